// A server that asks the user in the middle of a call. The call is ended (the server is told that nobody has answered yet), its
// question becomes an approval in the journal, and with the decision the call is made again and the question answered.
//
// A decision is yes or no. So only questions that a yes answers are asked: a confirmation, or a form whose fields all have
// defaults. Anything else is declined at once.
import { AsyncLocalStorage } from 'node:async_hooks'
import type { ElicitRequest, ElicitResult } from '@modelcontextprotocol/client'
import type { ToolDecision } from '@oxbow/core'
import type { QuestionPolicy } from './options.ts'

export interface Question {
  readonly message: string
  /** What a yes says to the server. */
  readonly answer: Readonly<Record<string, string | number | boolean | string[]>>
}

/** What one call has been told by a person, and what its server wants to know beside. */
export interface Asking {
  /** Asked before, in the order of the server; the decision is on all of them. */
  readonly decided: readonly Question[]
  readonly decision: ToolDecision | undefined
  readonly open: Question[]
}

export const newAsking = (decision: ToolDecision | undefined): Asking => ({
  decided: (decision?.arguments.questions as readonly Question[] | undefined) ?? [],
  decision,
  open: [],
})

/** To which call a request of the server belongs: over HTTP it comes on the stream of the call's own response. */
export const currentCall = new AsyncLocalStorage<Asking>()

/** @param inFlight all calls of the connection: over pipes a question says nothing of its call, so it must be the only one. */
export async function answerTo(
  { params }: ElicitRequest,
  inFlight: ReadonlySet<Asking>,
  policy: QuestionPolicy = 'ask',
): Promise<ElicitResult> {
  if (!('requestedSchema' in params) || policy === 'decline') return { action: 'decline' }
  const { message, requestedSchema: form } = params
  if (typeof policy === 'function') {
    const { action, content } = await policy({ message, form })
    return { action, ...(content !== undefined && { content: { ...content } }) }
  }
  const [only] = inFlight
  const call = currentCall.getStore() ?? (inFlight.size === 1 ? only : undefined)
  const question = questionOf(message, form)
  if (call === undefined || question === undefined) return { action: 'decline' }
  const known = call.decided.some((it) => JSON.stringify(it) === JSON.stringify(question))
  if (!known) {
    call.open.push(question)
    return { action: 'cancel' }
  }
  if (call.decision?.verdict === 'approved') return { action: 'accept', content: { ...question.answer } }
  return { action: call.decision?.verdict === 'denied' ? 'decline' : 'cancel' }
}

type Form = Extract<ElicitRequest['params'], { requestedSchema: unknown }>['requestedSchema']

function questionOf(message: string, { properties, required = [] }: Form): Question | undefined {
  const answer: Record<string, string | number | boolean | string[]> = {}
  for (const [name, field] of Object.entries(properties)) {
    if (field.default !== undefined) answer[name] = field.default
    else if (field.type === 'boolean') answer[name] = true
    else if (required.includes(name)) return undefined
  }
  return { message, answer }
}
