// What remains of messages that the model no longer sees: the notes of a summary, and the user's messages verbatim.
import { type Block, estimateTokens, type InputBlock, type Message } from '@oxbow/core'
import { bounded } from '@oxbow/core/internal'
import { cutMiddle, readAgain } from './shorten.ts'

export const KINDS = ['goal', 'constraint', 'decision', 'fact', 'open'] as const
export type NoteKind = (typeof KINDS)[number]

export interface MemoryNote {
  /** Stable across compactions: `n1`, `n2` … */
  readonly id: string
  readonly kind: NoteKind
  readonly text: string
  /** The source: a file, an address, the id of a call. */
  readonly where?: string
}

/** Stored with each compaction, for the next one. */
export interface Memory {
  readonly notes: readonly MemoryNote[]
  readonly lastNote: number
  /** Messages that are no longer shown. */
  readonly covered: number
  /** Notes and user messages dropped for lack of room. */
  readonly lost: { readonly notes: number; readonly said: number }
}

export const emptyMemory: Memory = { notes: [], lastNote: 0, covered: 0, lost: { notes: 0, said: 0 } }

/** The additions of a summary, and the ids of notes that it closes. */
export interface Additions {
  readonly add: readonly Omit<MemoryNote, 'id'>[]
  readonly done: readonly string[]
}

/** A model cannot close facts and constraints: they are dropped only for lack of room, oldest first. */
const ENDABLE: ReadonlySet<NoteKind> = new Set(['goal', 'decision', 'open'])
const LEAVING: readonly NoteKind[] = ['fact', 'decision', 'open', 'goal', 'constraint']

/** Old notes stay unchanged: no model rewrites them, so none is lost from summary to summary. */
export function rememberNotes(memory: Memory, { add, done }: Additions, tokens: number): Memory {
  const ended = new Set(done)
  const notes: MemoryNote[] = memory.notes.filter((it) => !(ended.has(it.id) && ENDABLE.has(it.kind)))
  const known = new Set(notes.map(sayingOf))
  let { lastNote } = memory
  for (const it of add) {
    if (known.has(sayingOf(it))) continue
    known.add(sayingOf(it))
    notes.push({ id: `n${++lastNote}`, ...it })
  }
  let lost = 0
  for (let used = tokensIn(notes); used > tokens && notes.length > 0; used = tokensIn(notes)) {
    const kind = LEAVING.find((it) => notes.some((note) => note.kind === it))
    notes.splice(
      notes.findIndex((it) => it.kind === kind),
      1,
    )
    lost += 1
  }
  return { ...memory, notes, lastNote, lost: { ...memory.lost, notes: memory.lost.notes + lost } }
}

const sayingOf = ({ kind, text }: Pick<MemoryNote, 'kind' | 'text'>): string => `${kind} ${text}`
/** Always one line: another line could pass for a title or another note. */
export const lineOf = ({ id, text, where }: MemoryNote): string =>
  `- ${id}: ${text}${where ? ` (${where})` : ''}`.replace(/\s+/g, ' ')
const tokensIn = (notes: readonly MemoryNote[]): number =>
  notes.reduce((sum, it) => sum + estimateTokens(lineOf(it)), 0)

const TITLES: Record<NoteKind, string> = {
  goal: 'Goals',
  constraint: 'Constraints',
  decision: 'Decisions',
  fact: 'Facts',
  open: 'Open work',
}

export const notesText = (notes: readonly MemoryNote[]): string =>
  KINDS.flatMap((kind) => {
    const lines = notes.filter((it) => it.kind === kind).map(lineOf)
    return lines.length === 0 ? [] : [`${TITLES[kind]}:\n${lines.join('\n')}`]
  }).join('\n')

/**
 * The message that replaces all before it. Its first block holds the notes, as data, because they may come from
 * results. Every other block is the user's own.
 */
export function headMessage(id: string, { notes, covered, lost }: Memory, said: readonly InputBlock[]): Message {
  const lines = [
    `[The first ${covered} messages of this conversation are no longer shown. ` +
      'All of them can be found with session_search and read with session_read.]',
    ...(notes.length > 0 ? [bounded('notes on them', notesText(notes))] : []),
    ...(lost.notes > 0 ? [`[${lost.notes} older notes had no room.]`] : []),
    ...(lost.said > 0 ? [`[Earlier parts of what the user said had no room; ${readAgain({ only: 'user' })}.]`] : []),
    ...(said.length > 0 ? ['The user’s messages until then, verbatim, oldest first:'] : []),
  ]
  return { id, role: 'user', blocks: [{ type: 'text', text: lines.join('\n') }, ...said] }
}

/** The user's messages inside a message made by `headMessage`. */
export const saidInMessages = (head: Message): InputBlock[] => head.blocks.slice(1).filter(isInput)

export const isInput = (block: Block): block is InputBlock => block.type === 'text' || block.type === 'data'

const DATA_TOKENS = 800
const costOf = (block: InputBlock): number => (block.type === 'text' ? estimateTokens(block.text) : DATA_TOKENS)

/** The newest of the user's messages, up to `tokens`. The very newest is cut in the middle if it alone is too long. */
export function sayable(said: readonly InputBlock[], tokens: number): { said: InputBlock[]; lost: number } {
  const kept: InputBlock[] = []
  let left = tokens
  for (const block of [...said].reverse()) {
    const cost = costOf(block)
    if (cost > left) {
      if (kept.length === 0 && block.type === 'text') {
        const share = left / cost
        kept.push({ type: 'text', text: cutMiddle(block.text, block.text.length * share, readAgain({ only: 'user' })) })
      }
      break
    }
    left -= cost
    kept.push(block)
  }
  return { said: kept.reverse(), lost: said.length - kept.length }
}
