// The hand-off of a child: the requested form of its answer, and how each of its ends reads to the parent.

import { bounded } from '../agents/prompt.ts'
import type { JsonSchema } from '../checks/json-schema.ts'
import type { Event } from '../events/types.ts'
import { isEnd, turnResult } from '../state/turn-result.ts'
import type { ChildEnd, ChildStatus } from '../tools/child-sessions.ts'

interface HandOff {
  readonly status: 'done' | 'partial' | 'blocked'
  readonly conclusion: string
  readonly facts: readonly { readonly text: string; readonly where: string }[]
  readonly open_questions: readonly string[]
}

export const handOffSchema: JsonSchema = {
  type: 'object',
  properties: {
    status: { enum: ['done', 'partial', 'blocked'], description: 'Whether the task is done, in part, or cannot be.' },
    conclusion: { type: 'string', description: 'The answer, for a reader who has not seen your work.' },
    facts: {
      type: 'array',
      description: 'What you found, each with the place where it can be checked.',
      items: {
        type: 'object',
        properties: { text: { type: 'string' }, where: { type: 'string', description: 'File and line, URL, call …' } },
        required: ['text', 'where'],
        additionalProperties: false,
      },
    },
    open_questions: { type: 'array', items: { type: 'string' } },
  },
  required: ['status', 'conclusion', 'facts', 'open_questions'],
  additionalProperties: false,
}

/** Longer than this a hand-off is not shown in the parent's conversation: an artifact holds all of it. */
export const MAX_HAND_OFF = 16_000
/** Of the body of an error, whose text is short. */
const MAX_IN_ERROR = 1_200

/** @returns the end of a child's turn, from that turn's events; `whole` is its text in full */
export function endOf(
  agent: string,
  session: string,
  turnId: string,
  events: readonly Event[],
): ChildEnd & { readonly whole: string } {
  const { status, why, body } = read(turnId, events)
  // It could not read results that arrived below after its own end, so the reader is informed.
  const end = events.find(isEnd)?.seq ?? Number.POSITIVE_INFINITY
  const late = events.filter((it): it is Event<'child.closed'> => it.type === 'child.closed' && it.seq > end)
  const stopped = late.filter((it) => it.status === 'cancelled').map((it) => it.agent)
  const unread = late.filter((it) => it.status !== 'cancelled').map((it) => `\nIt has not read this: ${it.text}`)
  const head = `The agent ${agent} (${session}) has ended: ${status}.${why === '' ? '' : ` ${why}`}`
  const below = stopped.length === 0 ? '' : ` Stopped before they had ended: ${stopped.join(', ')}.`
  const lead = `${head}${below}${unread.join('')}`
  const textWith = (shown: string): string => (shown === '' ? lead : `${lead}\n${bounded(`from ${agent}`, shown)}`)
  const whole = textWith(body)
  // An error is short; what the agent hands over is not cut here.
  if (why === '' || body.length <= MAX_IN_ERROR) return { status, text: whole, whole }
  const left = `[${body.length - MAX_IN_ERROR} of ${body.length} characters omitted. Use task_output to read them.]`
  return { status, text: `${textWith(body.slice(0, MAX_IN_ERROR))}\n${left}`, whole }
}

/** The text and calls so far of a child that is still working. */
export const soFarText = (agent: string, text: string): string => (text === '' ? '' : bounded(`from ${agent}`, text))

const NOT_DONE = 'Do not treat the task as done.'

function read(turnId: string, events: readonly Event[]): { status: ChildStatus; why: string; body: string } {
  const result = turnResult(turnId, events)
  const body = result.text.trim()
  const last = events.findLast((it) => it.type === 'model.finished' && it.turnId === turnId) as
    | Event<'model.finished'>
    | undefined
  const step = events.findLast((it) => it.type === 'step.started' && it.turnId === turnId) as
    | Event<'step.started'>
    | undefined
  if (result.status === 'cancelled') return { status: 'cancelled', why: `${result.reason}. ${NOT_DONE}`, body }
  if (result.reason === 'refusal' || result.reason === 'filtered')
    return { status: 'refused', why: `Its model refused to continue. ${NOT_DONE}`, body }
  if (last?.finishReason === 'length') return { status: 'cut', why: `Its answer was cut off. ${NOT_DONE}`, body }
  if (result.error?.code === 'empty_reply')
    return { status: 'empty', why: `It gave no answer. Do not assume that it did anything.`, body: '' }
  if (result.error !== undefined)
    // The message of a provider or another service is not the engine's own text.
    return { status: 'failed', why: NOT_DONE, body: [`error: ${result.error.message}`, body].join('\n').trim() }
  const handOff = result.output as HandOff
  const told = inWords(handOff)
  if (step?.toolsOffered === false)
    return { status: 'max_steps', why: `It ran out of steps and handed over what it had. ${NOT_DONE}`, body: told }
  if (handOff.conclusion.trim() === '' && handOff.facts.length === 0)
    return { status: 'empty', why: 'It did not hand anything over. Do not assume that it did anything.', body: told }
  return { status: handOff.status, why: '', body: told }
}

function inWords({ status, conclusion, facts, open_questions: questions }: HandOff): string {
  const list = (title: string, lines: readonly string[]): string =>
    lines.length === 0 ? '' : `\n${title}:\n${lines.map((it) => `- ${it}`).join('\n')}`
  const found = facts.map(({ text, where }) => `${text} (${where})`)
  return `status: ${status}\nconclusion: ${conclusion}${list('facts', found)}${list('open questions', questions)}`
}
