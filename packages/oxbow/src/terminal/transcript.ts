// A turn as lines of text for a terminal: pure, from events and fragments.
import { type Event, isEvent, type SessionItem } from '@oxbow/core'
import { reasonInWords } from './words.ts'

export interface Transcript {
  /** The text to write for this item; empty for most stored events. */
  render(item: SessionItem): string
}

export interface Style {
  dim(text: string): string
  bold(text: string): string
  red(text: string): string
}

const code = (open: number, close: number) => (text: string) => `\u001b[${open}m${text}\u001b[${close}m`
export const plain: Style = { dim: (it) => it, bold: (it) => it, red: (it) => it }
export const coloured: Style = { dim: code(2, 22), bold: code(1, 22), red: code(31, 39) }

const MAX_SHOWN = 200

/** Renders turns one after the other; remembers the shown part of an answer, so that nothing appears twice. */
export function transcript(style: Style): Transcript {
  /** Characters shown by block of the step. */
  let shown = new Map<number, number>()
  let open: 'text' | 'thinking' | undefined
  const tools = new Map<string, string>()

  const close = (): string => {
    const end = open === undefined ? '' : '\n'
    open = undefined
    return end
  }
  const fragment = (kind: 'text' | 'thinking', block: number, offset: number, text: string): string => {
    const known = shown.get(block) ?? 0
    const fresh = text.slice(Math.max(0, known - offset))
    if (fresh === '') return ''
    shown.set(block, known + fresh.length)
    const before = open === kind ? '' : close()
    open = kind
    const safe = printable(fresh)
    return before + (kind === 'thinking' ? style.dim(safe) : safe)
  }

  const finished = (event: Event<'model.finished'>): string => {
    let out = ''
    event.message.blocks.forEach((block, index) => {
      // Content that was not streamed is shown now, whole.
      if (block.type === 'text' || block.type === 'thinking') out += fragment(block.type, index, 0, block.text)
      if (block.type !== 'call') return
      tools.set(block.callId, block.tool)
      out += `${close()}${style.dim(`→ ${printable(block.tool)} ${clip(block.arguments)}`)}\n`
    })
    shown = new Map()
    return out + close()
  }

  /** The activity of a sub-agent, with the agents above it. */
  function below({ source, item }: Extract<SessionItem, { type: 'child.delta' }>): string {
    const said = isEvent(item) ? inShort(item) : ''
    return said === '' ? '' : `${close()}${style.dim(`… ${printable(source.agents.slice(1).join(' › '))}: ${said}`)}\n`
  }

  function renderEvent(event: Event): string {
    switch (event.type) {
      case 'turn.claimed': {
        if (event.epoch === 1) return ''
        shown = new Map()
        return `${close()}${style.dim('(resumed after an interruption)')}\n`
      }
      case 'model.finished':
        return finished(event)
      case 'call.finished': {
        const text = event.content.map((it) => (it.type === 'text' ? it.text : `[${it.mediaType}]`)).join(' ')
        const mark = event.status === 'success' ? '←' : `✗ ${event.status}`
        const line = `${mark} ${printable(tools.get(event.callId) ?? '')} ${clip(text)}`
        return `${event.status === 'success' ? style.dim(line) : style.red(line)}\n`
      }
      case 'approval.resolved': {
        const by = event.principal === undefined ? '' : ` by ${printable(event.principal.user)}`
        const why = event.reason === undefined ? '' : `: ${printable(event.reason)}`
        const edited = event.arguments && `, with other arguments: ${printable(JSON.stringify(event.arguments))}`
        return `${close()}${style.dim(`(${event.verdict}${by}${edited ?? ''}${why})`)}\n`
      }
      case 'reply.reviewed': {
        const again = event.correction === undefined ? '' : ' The model will answer again.'
        return `${close()}${style.red(`! ${printable(event.message)}${again}`)}\n`
      }
      case 'context.compacted': {
        if (event.messages === undefined) return ''
        const { tokensBefore, tokensAfter, messagesBefore, messagesAfter } = event
        const what = `${messagesBefore} to ${messagesAfter} messages, about ${tokensBefore} to ${tokensAfter} tokens`
        return `${close()}${style.dim(`(the context was compacted: ${what})`)}\n`
      }
      case 'turn.paused':
        return `${close()}${style.dim(`(waiting: ${reasonInWords(event.reason)})`)}\n`
      case 'turn.failed': {
        const reference = event.error.reference === undefined ? '' : ` (reference ${event.error.reference})`
        return `${close()}${style.red(`failed: ${printable(event.error.message)}${reference}`)}\n`
      }
      case 'turn.cancelled':
        return `${close()}${style.dim(`(stopped: ${printable(event.reason)})`)}\n`
      case 'turn.finished':
        return event.reason === 'completed' ? '' : `${style.dim(`(ended early: ${reasonInWords(event.reason)})`)}\n`
      default:
        return ''
    }
  }

  return {
    render(item) {
      if (isEvent(item)) return renderEvent(item)
      if (item.type === 'text.delta') return fragment('text', item.block, item.offset, item.text)
      if (item.type === 'thinking.delta') return fragment('thinking', item.block, item.offset, item.text)
      if (item.type === 'child.delta') return below(item)
      if (item.type === 'progress.delta') return `${close()}${style.dim(`… ${clip(item.text)}`)}\n`
      return ''
    },
  }
}

function inShort(event: Event): string {
  if (event.type === 'model.finished')
    return event.message.blocks
      .flatMap((it) => (it.type === 'call' ? [`calls ${printable(it.tool)} ${clip(it.arguments)}`] : []))
      .join(', ')
  if (event.type === 'call.finished') return `result: ${event.status}`
  return event.type === 'approval.requested' ? `is waiting for approval of ${printable(event.tool)}` : ''
}

/** Everything needed for a decision: the full arguments, however long, and the id for deciding elsewhere. */
export function approvalCard(
  { tool, arguments: given, reason, rule, expiresAt }: Event<'approval.requested'>,
  style: Style,
  id: string,
): string {
  const lines = Object.entries(given).map(([name, value]) => `    ${name}: ${JSON.stringify(value)}`)
  return [
    style.bold(`? ${printable(tool)}`),
    ...lines.map(printable),
    style.dim(`  ${printable(reason)} (${printable(rule)}; until ${new Date(expiresAt).toISOString()})`),
    style.dim(`  ${id}`),
  ].join('\n')
}

/** Text of a model or a tool must not control the terminal: control and direction characters are shown escaped. */
export const printable = (text: string): string =>
  text.replace(/[^\P{Cc}\t\n]|[\u202a-\u202e\u2066-\u2069]/gu, (it) =>
    it === '\r' ? '' : `\\u${it.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

/** On one line: a file name with a line break must not look like two lines of output. */
export const inLine = (text: string): string => printable(text.replaceAll('\n', '\\n'))

const clip = (text: string): string => {
  const line = printable(text.replace(/\s+/g, ' ').trim())
  return line.length <= MAX_SHOWN ? line : `${line.slice(0, MAX_SHOWN)}…`
}
