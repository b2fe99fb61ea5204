# Install the bridge from this folder, or update it, or remove it. Run it as an administrator.
#
#   install.ps1                    install or update, and start the service
#   install.ps1 -Config FILE       with this configuration, if there is none yet
#   install.ps1 -Account NAME      run as another account, such as LocalSystem
#   install.ps1 -Remove            remove the service and the program; configuration, journal and logs stay
[CmdletBinding(DefaultParameterSetName = 'Install')]
param(
    [Parameter(ParameterSetName = 'Install')][string]$Config,
    [Parameter(ParameterSetName = 'Install')][string]$Account,
    [Parameter(ParameterSetName = 'Remove')][switch]$Remove,
    [string]$Target = (Join-Path $env:ProgramFiles 'scheduled-events-bridge')
)

$ErrorActionPreference = 'Stop'
$name = 'scheduled-events-bridge'
$data = Join-Path $env:ProgramData $name

function Invoke-Seb {
    param([string[]]$Words)
    & (Join-Path $Target 'python\python.exe') -I -m bridge.cli @Words
    if ($LASTEXITCODE -ne 0) { throw "seb $Words ended with $LASTEXITCODE" }
}

function Test-Administrator {
    $identity = [Security.Principal.WindowsIdentity]::GetCurrent()
    ([Security.Principal.WindowsPrincipal]$identity).IsInRole([Security.Principal.WindowsBuiltInRole]::Administrator)
}

function Remove-Bridge {
    if (Get-Service -Name $name -ErrorAction SilentlyContinue) { Invoke-Seb 'service', 'remove' }
}

function Update-MachinePath {
    param([bool]$Present)
    $parts = @([Environment]::GetEnvironmentVariable('Path', 'Machine') -split ';' | Where-Object { $_ -and $_ -ne $Target })
    if ($Present) { $parts += $Target }
    [Environment]::SetEnvironmentVariable('Path', ($parts -join ';'), 'Machine')
}

# Keep what another user may have put there out of a service: only administrators may own this folder.
function New-DataFolder {
    if (-not (Test-Path $data)) {
        New-Item -ItemType Directory -Path $data | Out-Null
        & icacls.exe $data /inheritance:r /grant '*S-1-5-18:(OI)(CI)F' '*S-1-5-32-544:(OI)(CI)F' | Out-Null
        if ($LASTEXITCODE -ne 0) { throw "icacls could not set the rights of $data" }
    }
}

if (-not (Test-Administrator)) { throw 'Run this script in a PowerShell of an administrator.' }

if ($Remove) {
    Remove-Bridge
    Update-MachinePath $false
    if (Test-Path $Target) { Remove-Item -Recurse -Force $Target }
    Write-Output "Removed $Target. Configuration, journal and logs are still in $data."
    exit 0
}

if (Test-Path (Join-Path $Target 'python\python.exe')) { Remove-Bridge }
if ($PSScriptRoot -ne $Target) {
    # Without the modules of the version before.
    if (Test-Path $Target) { Remove-Item -Recurse -Force $Target }
    New-Item -ItemType Directory -Path $Target | Out-Null
    Copy-Item -Recurse -Path (Join-Path $PSScriptRoot '*') -Destination $Target
}
& (Join-Path $Target 'python\python.exe') -I -m compileall -q (Join-Path $Target 'python\Lib') | Out-Null

New-DataFolder
$file = Join-Path $data 'config.yaml'
if (-not (Test-Path $file)) {
    if (-not $Config) { $Config = Join-Path $PSScriptRoot 'config.yaml' }
    Copy-Item -Path $Config -Destination $file
}

$words = @('service', 'install', '-c', $file)
if ($Account) { $words += @('--account', $Account) }
Invoke-Seb $words
Invoke-Seb 'service', 'start'
Update-MachinePath $true
Write-Output "Installed in $Target. The configuration is $file."
