@"%~dp0python\python.exe" -I -m bridge.cli %*
