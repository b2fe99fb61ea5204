# Stop a Windows service before Azure touches this VM, and start it again when that is over.
#
#   drain.ps1 -Service NAME
#
# The bridge runs it for each CloudEvent and reads its exit code: 0 is done, 75 is try again later, anything
# else gives up. It may run twice for the same CloudEvent, so every step can be repeated.
param([Parameter(Mandatory = $true)][string]$Service)

$ErrorActionPreference = 'Stop'

if ($env:EVENT_KIND -in 'completed', 'canceled') {
    try { Start-Service -Name $Service } catch { Write-Output "$_"; exit 75 }
    Write-Output "$Service runs again"
    exit 0
}
if ($env:EVENT_KIND -notin 'scheduled', 'updated') { exit 0 }
if ($env:EVENT_AFFECTED -ne 'true') { exit 0 }
if ($env:EVENT_DRILL -eq 'true') {
    Write-Output "a drill: $Service would be stopped now"
    exit 0
}

try { Stop-Service -Name $Service -Force -NoWait } catch { Write-Output "$_"; exit 75 }

$left = 60
if ($env:EVENT_SECONDS_LEFT) { $left = [int]$env:EVENT_SECONDS_LEFT }
try {
    (Get-Service -Name $Service).WaitForStatus('Stopped', [TimeSpan]::FromSeconds($left))
}
catch [System.ServiceProcess.TimeoutException] {
    Write-Output "$Service has not stopped, and the notice is over"
    exit 1
}
Write-Output "$Service is drained"
exit 0
