// Lines of a terminal as an SVG that plays them in a loop. Viewers that do not animate show all lines.
import type { Line } from './record.ts'

const SIZE = 14
const LEADING = 21
const MARGIN = 20
/** The ratio of the usual monospaced fonts. */
const ADVANCE = 0.602 * SIZE
const TYPING_MS = 35
const PAUSE_MS = { command: 500, output: 250, comment: 1_200 }
const HOLD_MS = 6_000

export function svgOf(lines: readonly Line[]): string {
  const columns = Math.max(...lines.map((it) => prompted(it).length))
  const width = Math.ceil(columns * ADVANCE + 2 * MARGIN)
  const height = lines.length * LEADING + 2 * MARGIN
  let now = PAUSE_MS.command
  const starts = lines.map((line) => {
    const from = now
    const to = from + (isTyped(line) ? line.text.length * TYPING_MS : 1)
    now = to + PAUSE_MS[line.kind]
    return { from, to }
  })
  const total = now + HOLD_MS
  const percent = (ms: number): string => `${((ms / total) * 100).toFixed(2)}%`
  const rules = lines.map((line, n) => {
    const { from, to } = starts[n]!
    return [
      `@keyframes l${n}{0%,${percent(from)}{clip-path:inset(0 100% 0 0)}${percent(to)},100%{clip-path:inset(0)}}`,
      `#l${n}{animation:l${n} ${total}ms ${isTyped(line) ? `steps(${line.text.length})` : 'step-end'} infinite}`,
    ].join('\n')
  })
  const texts = lines.map(
    (line, n) =>
      `<text id="l${n}" class="${classOf(line)}" x="${MARGIN}" y="${MARGIN + SIZE + n * LEADING}">${escaped(prompted(line))}</text>`,
  )
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">
<title>A turn is killed in the middle of its answer. The next start finishes it.</title>
<style>
text{font:${SIZE}px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;white-space:pre;fill:#d6deeb}
.command{fill:#fff;font-weight:bold}
.comment{fill:#f78c6c}
.dim{fill:#7f8fa6}
${rules.join('\n')}
@media (prefers-reduced-motion:reduce){text{animation:none!important}}
</style>
<rect width="100%" height="100%" rx="8" fill="#161b22"/>
${texts.join('\n')}
</svg>
`
}

const prompted = ({ kind, text }: Line): string => (kind === 'command' ? `$ ${text}` : text)
/** Tool calls, their results and notices are dim, as the terminal shows them. */
const isDim = ({ kind, text }: Line): boolean => kind === 'output' && /^[→←(]/.test(text)
/** The model's answer streams; commands are typed. */
const isTyped = (line: Line): boolean => line.kind !== 'comment' && !isDim(line) && line.text.length > 1
const classOf = (line: Line): string => (isDim(line) ? 'dim' : line.kind)
const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
