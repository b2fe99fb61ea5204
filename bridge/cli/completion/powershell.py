"""Completion for PowerShell 5.1 and 7."""

from bridge.cli.completion.tree import Command

_SCRIPT = """# Completion of seb for PowerShell. Load it with:
#   seb completion powershell | Out-String | Invoke-Expression
Register-ArgumentCompleter -Native -CommandName seb, scheduled-events-bridge -ScriptBlock {
    param($word, $tree, $position)
    $known = @{
%(known)s
    }
    $path = ''
    foreach ($element in $tree.CommandElements | Select-Object -Skip 1) {
        if ($element.Extent.EndOffset -ge $position) { break }
        $longer = "$path $($element.Extent.Text)".Trim()
        if ($known.ContainsKey($longer)) { $path = $longer }
    }
    $known[$path] | Where-Object { $_[0] -like "$word*" } | ForEach-Object {
        [System.Management.Automation.CompletionResult]::new($_[0], $_[0], 'ParameterValue', $_[1])
    }
}
"""


def script(root: Command) -> str:
    return _SCRIPT % {"known": "\n".join(_entry(one) for one in root.each())}


def _entry(command: Command) -> str:
    offered = [(act.path[-1], act.about) for act in command.acts]
    offered += [(word, word) for word in command.choices]
    offered += [(name, one.about or name) for one in command.options for name in one.names]
    words = ", ".join(f"@('{word}', '{about or word}')" for word, about in offered)
    return f"        '{' '.join(command.path)}' = @({words})"
