variable "name" {
  description = "The name of the resource group, the scale set and the network."
  type        = string
  default     = "scheduled-events-bridge"
}

variable "location" {
  description = "The Azure region."
  type        = string
  default     = "westeurope"
}

variable "namespace" {
  description = "The name of the Event Hubs namespace; it must be unique in Azure."
  type        = string

  validation {
    condition     = can(regex("^[A-Za-z][A-Za-z0-9-]{4,48}[A-Za-z0-9]$", var.namespace))
    error_message = "A namespace has 6 to 50 letters, digits and hyphens, and begins with a letter."
  }
}

variable "package_url" {
  description = "Where the VMs download the .deb of the bridge."
  type        = string

  validation {
    condition     = startswith(var.package_url, "https://")
    error_message = "The address must begin with https://."
  }
}

variable "package_sha256" {
  description = "The line of the .deb in SHA256SUMS."
  type        = string

  validation {
    condition     = can(regex("^[0-9a-f]{64}$", var.package_sha256))
    error_message = "A SHA-256 has 64 hexadecimal digits."
  }
}

variable "ssh_public_key" {
  description = "The public key of the administrator."
  type        = string
}

variable "instances" {
  description = "How many VMs."
  type        = number
  default     = 2
}

variable "vm_size" {
  description = "The size of the VMs."
  type        = string
  default     = "Standard_B2s"
}
