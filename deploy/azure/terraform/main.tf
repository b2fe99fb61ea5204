# A scale set whose VMs run the bridge, and an Event Hubs namespace that it reaches with a managed identity.
# There is no secret anywhere: local authentication is off, and VMs take an SSH key only.
terraform {
  required_version = ">= 1.5"
  required_providers {
    azurerm = {
      source  = "hashicorp/azurerm"
      version = "~> 4.0"
    }
  }
}

provider "azurerm" {
  features {}
}

resource "azurerm_resource_group" "this" {
  name     = var.name
  location = var.location
}

resource "azurerm_user_assigned_identity" "bridge" {
  name                = "${var.name}-bridge"
  resource_group_name = azurerm_resource_group.this.name
  location            = azurerm_resource_group.this.location
}

resource "azurerm_eventhub_namespace" "this" {
  name                         = var.namespace
  resource_group_name          = azurerm_resource_group.this.name
  location                     = azurerm_resource_group.this.location
  sku                          = "Standard"
  capacity                     = 1
  local_authentication_enabled = false
  minimum_tls_version          = "1.2"
}

resource "azurerm_eventhub" "events" {
  name              = "scheduled-events"
  namespace_id      = azurerm_eventhub_namespace.this.id
  partition_count   = 2
  message_retention = 7
}

resource "azurerm_eventhub" "approvals" {
  name              = "scheduled-events-approvals"
  namespace_id      = azurerm_eventhub_namespace.this.id
  partition_count   = 1
  message_retention = 1
}

# The bridge may publish events and read approvals, and nothing else.
resource "azurerm_role_assignment" "send_events" {
  scope                = azurerm_eventhub.events.id
  role_definition_name = "Azure Event Hubs Data Sender"
  principal_id         = azurerm_user_assigned_identity.bridge.principal_id
}

resource "azurerm_role_assignment" "receive_approvals" {
  scope                = azurerm_eventhub.approvals.id
  role_definition_name = "Azure Event Hubs Data Receiver"
  principal_id         = azurerm_user_assigned_identity.bridge.principal_id
}

resource "azurerm_virtual_network" "this" {
  name                = var.name
  resource_group_name = azurerm_resource_group.this.name
  location            = azurerm_resource_group.this.location
  address_space       = ["10.0.0.0/16"]
}

resource "azurerm_subnet" "vms" {
  name                 = "vms"
  resource_group_name  = azurerm_resource_group.this.name
  virtual_network_name = azurerm_virtual_network.this.name
  address_prefixes     = ["10.0.1.0/24"]
}

resource "azurerm_linux_virtual_machine_scale_set" "this" {
  name                            = var.name
  resource_group_name             = azurerm_resource_group.this.name
  location                        = azurerm_resource_group.this.location
  sku                             = var.vm_size
  instances                       = var.instances
  admin_username                  = "azureuser"
  disable_password_authentication = true
  upgrade_mode                    = "Manual"
  custom_data                     = base64encode(local.cloud_init)

  admin_ssh_key {
    username   = "azureuser"
    public_key = var.ssh_public_key
  }

  source_image_reference {
    publisher = "Debian"
    offer     = "debian-12"
    sku       = "12-gen2"
    version   = "latest"
  }

  os_disk {
    caching              = "ReadWrite"
    storage_account_type = "Standard_LRS"
  }

  network_interface {
    name    = "main"
    primary = true

    ip_configuration {
      name      = "main"
      primary   = true
      subnet_id = azurerm_subnet.vms.id
    }
  }

  identity {
    type         = "UserAssigned"
    identity_ids = [azurerm_user_assigned_identity.bridge.id]
  }

  # Announces scale-ins and deletions as Terminate events, which the bridge publishes and can approve.
  termination_notification {
    enabled = true
    timeout = "PT15M"
  }

  depends_on = [
    azurerm_role_assignment.send_events,
    azurerm_role_assignment.receive_approvals,
  ]
}

locals {
  cloud_init = replace(replace(replace(replace(
    file("${path.module}/../cloud-init.yaml"),
    "{{PACKAGE_URL}}", var.package_url),
    "{{PACKAGE_SHA256}}", var.package_sha256),
    "{{NAMESPACE}}", azurerm_eventhub_namespace.this.name),
  "{{CLIENT_ID}}", azurerm_user_assigned_identity.bridge.client_id)
}
