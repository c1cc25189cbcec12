// The usage of a conversation as text: the context now, a turn, the session.
import { type SessionState, tokensOf, type Usage } from '@oxbow/core'

interface Used {
  readonly turn: Usage
  readonly state: Pick<SessionState, 'contextTokens' | 'usage'>
  readonly window: number | undefined
}

/** One short line: `context 12k of 400k (3 %) · turn 13k tokens $0.01 · session 90k tokens $0.12`. */
export function usageLine({ turn, state, window }: Used): string {
  const of = window === undefined ? '' : ` of ${short(window)} (${percent(state.contextTokens, window)})`
  return `context ${short(state.contextTokens)}${of} · turn ${inShort(turn)} · session ${inShort(state.usage)}`
}

export function usageDetail({ turn, state, window }: Used): string {
  const rows = [
    ['', 'input', 'from cache', 'to cache', 'output', 'thinking', 'cost'],
    ['turn', ...columns(turn)],
    ['session', ...columns(state.usage)],
  ]
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)))
  const table = rows.map((row) =>
    row.map((cell, n) => (n === 0 ? cell.padEnd(widths[n]!) : cell.padStart(widths[n]!))).join('  '),
  )
  const of =
    window === undefined
      ? ' tokens; the model’s window is unknown'
      : ` of ${window} tokens (${percent(state.contextTokens, window)})`
  const estimated = state.usage.estimated ? ['The provider does not report all counts: some are estimated.'] : []
  return [...table, `context  ${state.contextTokens}${of}`, ...estimated].join('\n')
}

const columns = (usage: Usage): string[] => [
  ...[usage.inputTokens, usage.cacheReadTokens, usage.cacheWriteTokens, usage.outputTokens, usage.reasoningTokens].map(
    String,
  ),
  usage.cost === undefined ? 'unknown' : dollars(usage.cost),
]

function inShort(usage: Usage): string {
  const cost = usage.cost === undefined ? '' : ` ${dollars(usage.cost)}`
  return `${usage.estimated ? 'about ' : ''}${short(tokensOf(usage))} tokens${cost}`
}

const short = (tokens: number): string =>
  tokens < 1_000 ? `${tokens}` : tokens < 1_000_000 ? `${figure(tokens / 1_000)}k` : `${figure(tokens / 1_000_000)}M`
const figure = (value: number): string => (value < 10 ? value.toFixed(1).replace(/\.0$/, '') : value.toFixed(0))
const percent = (part: number, whole: number): string => `${Math.round((part / whole) * 100)} %`
/** Two significant digits are enough for a cost. */
const dollars = (cost: number): string =>
  `$${cost === 0 ? '0' : cost >= 1 ? cost.toFixed(2) : Number(cost.toPrecision(2))}`
