output "kafka_bootstrap_servers" {
  description = "Where consumers read CloudEvents and publish approvals."
  value       = "${azurerm_eventhub_namespace.this.name}.servicebus.windows.net:9093"
}

output "bridge_client_id" {
  description = "The client id of the identity that the bridges use."
  value       = azurerm_user_assigned_identity.bridge.client_id
}
