// A scale set whose VMs run the bridge, and an Event Hubs namespace that it reaches with a managed identity.
// There is no secret anywhere: local authentication is off, and VMs take an SSH key only.
//   az deployment group create --resource-group GROUP --template-file main.bicep --parameters namespaceName=… …
targetScope = 'resourceGroup'

@description('The name of the scale set and the network.')
param name string = 'scheduled-events-bridge'

@description('The Azure region.')
param location string = resourceGroup().location

@description('The name of the Event Hubs namespace; it must be unique in Azure.')
@minLength(6)
@maxLength(50)
param namespaceName string

@description('Where the VMs download the .deb of the bridge.')
param packageUrl string

@description('The line of the .deb in SHA256SUMS.')
@minLength(64)
@maxLength(64)
param packageSha256 string

@description('The public key of the administrator.')
param sshPublicKey string

@description('How many VMs.')
@minValue(1)
param instances int = 2

@description('The size of the VMs.')
param vmSize string = 'Standard_B2s'

var senderRole = subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '2b629674-e913-4c01-ae53-ef4638d8f975')
var receiverRole = subscriptionResourceId('Microsoft.Authorization/roleDefinitions', 'a638d3c7-ab3a-418d-83e6-5f17a39d4fde')
var withPackage = replace(replace(loadTextContent('../cloud-init.yaml'), '{{PACKAGE_URL}}', packageUrl), '{{PACKAGE_SHA256}}', packageSha256)
var cloudInit = replace(replace(withPackage, '{{NAMESPACE}}', namespaceName), '{{CLIENT_ID}}', identity.properties.clientId)

resource identity 'Microsoft.ManagedIdentity/userAssignedIdentities@2023-01-31' = {
  name: '${name}-bridge'
  location: location
}

resource namespace 'Microsoft.EventHub/namespaces@2024-01-01' = {
  name: namespaceName
  location: location
  sku: {
    name: 'Standard'
    tier: 'Standard'
    capacity: 1
  }
  properties: {
    disableLocalAuth: true
    minimumTlsVersion: '1.2'
  }
}

resource events 'Microsoft.EventHub/namespaces/eventhubs@2024-01-01' = {
  parent: namespace
  name: 'scheduled-events'
  properties: {
    partitionCount: 2
    messageRetentionInDays: 7
  }
}

resource approvals 'Microsoft.EventHub/namespaces/eventhubs@2024-01-01' = {
  parent: namespace
  name: 'scheduled-events-approvals'
  properties: {
    partitionCount: 1
    messageRetentionInDays: 1
  }
}

// The bridge may publish events and read approvals, and nothing else.
resource sendEvents 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(events.id, identity.id, senderRole)
  scope: events
  properties: {
    roleDefinitionId: senderRole
    principalId: identity.properties.principalId
    principalType: 'ServicePrincipal'
  }
}

resource receiveApprovals 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(approvals.id, identity.id, receiverRole)
  scope: approvals
  properties: {
    roleDefinitionId: receiverRole
    principalId: identity.properties.principalId
    principalType: 'ServicePrincipal'
  }
}

resource network 'Microsoft.Network/virtualNetworks@2024-01-01' = {
  name: name
  location: location
  properties: {
    addressSpace: {
      addressPrefixes: [
        '10.0.0.0/16'
      ]
    }
    subnets: [
      {
        name: 'vms'
        properties: {
          addressPrefix: '10.0.1.0/24'
        }
      }
    ]
  }
}

resource scaleSet 'Microsoft.Compute/virtualMachineScaleSets@2024-07-01' = {
  name: name
  location: location
  sku: {
    name: vmSize
    capacity: instances
  }
  identity: {
    type: 'UserAssigned'
    userAssignedIdentities: {
      '${identity.id}': {}
    }
  }
  properties: {
    orchestrationMode: 'Uniform'
    upgradePolicy: {
      mode: 'Manual'
    }
    virtualMachineProfile: {
      osProfile: {
        computerNamePrefix: take(name, 9)
        adminUsername: 'azureuser'
        customData: base64(cloudInit)
        linuxConfiguration: {
          disablePasswordAuthentication: true
          ssh: {
            publicKeys: [
              {
                path: '/home/azureuser/.ssh/authorized_keys'
                keyData: sshPublicKey
              }
            ]
          }
        }
      }
      storageProfile: {
        imageReference: {
          publisher: 'Debian'
          offer: 'debian-12'
          sku: '12-gen2'
          version: 'latest'
        }
        osDisk: {
          createOption: 'FromImage'
          caching: 'ReadWrite'
          managedDisk: {
            storageAccountType: 'Standard_LRS'
          }
        }
      }
      networkProfile: {
        networkInterfaceConfigurations: [
          {
            name: 'main'
            properties: {
              primary: true
              ipConfigurations: [
                {
                  name: 'main'
                  properties: {
                    primary: true
                    subnet: {
                      id: network.properties.subnets[0].id
                    }
                  }
                }
              ]
            }
          }
        ]
      }
      // Announces scale-ins and deletions as Terminate events, which the bridge publishes and can approve.
      scheduledEventsProfile: {
        terminateNotificationProfile: {
          enable: true
          notBeforeTimeout: 'PT15M'
        }
      }
    }
  }
  dependsOn: [
    sendEvents
    receiveApprovals
  ]
}

output kafkaBootstrapServers string = '${namespaceName}.servicebus.windows.net:9093'
output bridgeClientId string = identity.properties.clientId
