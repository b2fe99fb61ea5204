"""The report of a soak as one HTML page without external assets, for light and dark screens."""

from html import escape

from soak.ledger import Ledger
from soak.report import (
    Table,
    Verdicts,
    duplicate_rows,
    figures,
    headline,
    recovery_rows,
    usage_rows,
)
from soak.rulings import Breach
from soak.timeline import draw

STYLE = """
:root { color-scheme: light dark; --paper: #fbfaf7; --ink: #23282d; --soft: #68727c; --rule: #e2dfd8;
  --good: #2f7d5b; --bad: #b23a3a; --kill: #b5533c; --timeout: #c7972b; --reconnect: #5c7fa8;
  --delivery: #7f9f8f; --truth: #8c86a8; }
@media (prefers-color-scheme: dark) { :root { --paper: #16191c; --ink: #dfe3e6; --soft: #929ca5;
  --rule: #2b3137; --good: #6cc09a; --bad: #e57f7f; --kill: #d9806a; --timeout: #d9b45a;
  --reconnect: #86a8cf; --delivery: #6f9484; --truth: #9d97bd; } }
body { margin: 0 auto; max-width: 72rem; padding: 2.5rem 1.5rem 4rem; background: var(--paper);
  color: var(--ink); font: 16px/1.55 system-ui, sans-serif; }
h1 { font-size: 1.6rem; font-weight: 600; margin: 0 0 .3rem; }
h2 { font-size: 1.05rem; font-weight: 600; margin: 2.5rem 0 .7rem; }
p, li, td, th { font-size: .94rem; } .soft { color: var(--soft); }
ul.rules { list-style: none; padding: 0; columns: 2; column-gap: 2.5rem; }
ul.rules li { break-inside: avoid; padding: .2rem 0 .2rem 1.5rem; position: relative; }
ul.rules li::before { content: "✓"; color: var(--good); position: absolute; left: 0; }
ul.rules li.broken::before { content: "✗"; color: var(--bad); }
ul.rules .breach { color: var(--bad); font-size: .85rem; }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(13rem, 1fr)); gap: 1rem 2rem; }
dt { color: var(--soft); font-size: .82rem; } dd { margin: 0; font-size: 1.1rem; }
table { border-collapse: collapse; } .wide { overflow-x: auto; }
th { text-align: left; color: var(--soft); font-weight: 500; }
td, th { padding: .25rem 1.6rem .25rem 0; border-bottom: 1px solid var(--rule); }
svg { width: 100%; min-width: 46rem; height: auto; font: 11px system-ui, sans-serif; }
svg text { fill: var(--soft); } svg .label { fill: var(--ink); } svg .grid { stroke: var(--rule); }
svg .over { stroke: var(--soft); stroke-dasharray: 3 3; }
.kill { fill: var(--kill); } .timeout { fill: var(--timeout); } .reconnect { fill: var(--reconnect); }
.unexplained { fill: var(--bad); } .delivery { fill: var(--delivery); } .truth { fill: var(--truth); }
.legend span { margin-right: 1.4rem; } .legend i { display: inline-block; width: .8rem; height: .8rem;
  border-radius: 2px; margin-right: .4rem; vertical-align: -1px; }
.legend .kill { background: var(--kill); } .legend .timeout { background: var(--timeout); }
.legend .reconnect { background: var(--reconnect); }
@media (max-width: 50rem) { ul.rules { columns: 1; } }
"""
LEGEND = (
    '<p class="legend soft"><span><i class="kill"></i>kills</span>'
    '<span><i class="timeout"></i>silence and slowness: timeouts</span>'
    '<span><i class="reconnect"></i>cuts and refusals: reconnects</span>'
    "<span>dots under a sink are duplicates, in the color of their cause</span></p>"
)


def page(ledger: Ledger, verdicts: Verdicts) -> str:
    title = escape(headline(ledger, verdicts))
    body = [
        f"<h1>{title}</h1>",
        f'<p class="soft">Three bridges, all sinks at once, {escape(ledger.started[:19])} UTC.</p>',
        f'<ul class="rules">{"".join(_rule(*each) for each in verdicts.items())}</ul>',
        f"<dl>{''.join(_figure(*each) for each in figures(ledger, verdicts).items())}</dl>",
        f'<h2>Timeline</h2>{LEGEND}<div class="wide">{draw(ledger)}</div>',
        f"<h2>Duplicates, and what explains them</h2>{_table(duplicate_rows(ledger))}",
        f"<h2>Longest recovery after each kind of fault</h2>{_table(recovery_rows(ledger))}",
        f"<h2>Each bridge after its first minute, and at the end</h2>{_table(usage_rows(ledger))}",
    ]
    head = f'<meta charset="utf-8"><title>{title}</title><style>{STYLE}</style>'
    view = '<meta name="viewport" content="width=device-width, initial-scale=1">'
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}{view}</head><body>{"".join(body)}</body></html>\n'


def _rule(name: str, found: list[Breach]) -> str:
    broken = ' class="broken"' if found else ""
    said = "".join(f'<div class="breach">{escape(str(each))}</div>' for each in found[:20])
    return f"<li{broken}>{escape(name)}{said}</li>"


def _figure(name: str, value: str) -> str:
    return f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"


def _table(rows: Table) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in rows[0])
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows[1:]
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
