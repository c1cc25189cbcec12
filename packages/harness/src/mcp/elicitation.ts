// Questions of a server to the user during a call. The call ends (the server gets `cancel`), its question becomes an
// approval in the journal, and after the decision the call is repeated and the question is answered.
//
// A decision is yes or no. So only questions that a yes can answer are accepted: a confirmation, or a form whose fields
// all have defaults. All others are declined at once, and so is a question too long to read before agreeing.
// One decision answers one question once: the next one, even with the same text, needs another decision.
import { AsyncLocalStorage } from 'node:async_hooks'
import type { ElicitRequest, ElicitResult } from '@modelcontextprotocol/client'
import type { ToolDecision } from '@oxbow/core'
import type { QuestionPolicy } from './options.ts'

export interface ElicitationQuestion {
  readonly message: string
  /** The form's labels for its fields, by name. */
  readonly labels: Readonly<Record<string, string>>
  /** The content of a yes. */
  readonly answer: Readonly<Record<string, string | number | boolean | string[]>>
}

/** The decisions of one call, and further questions of its server. */
export interface Elicitation {
  /** Earlier questions in the server's order; the decision is on the last, and those before it were approved. */
  readonly decided: readonly ElicitationQuestion[]
  /** Questions that this run of the call has not answered yet. */
  readonly left: ElicitationQuestion[]
  readonly decision: ToolDecision | undefined
  /** The question to decide now. */
  open?: ElicitationQuestion
}

export function newAsking(decision: ToolDecision | undefined): Elicitation {
  const decided = (decision?.arguments.questions as readonly ElicitationQuestion[] | undefined) ?? []
  return { decided, left: [...decided], decision }
}

const MAX_LENGTH = 4_000

/** The text that the approver reads: everything that a yes sends. */
export function wordsOfQuestion({ message, labels, answer }: ElicitationQuestion): string {
  const fields = Object.entries(answer).map(([name, value]) => {
    const label = labels[name]
    return `${label === undefined ? name : `${label} (${name})`}: ${JSON.stringify(value)}`
  })
  return fields.length === 0 ? message : `${message} Approving sends ${fields.join('; ')}.`
}

/** The call of a server request: over HTTP it arrives on the stream of the call's own response. */
export const currentCall = new AsyncLocalStorage<Elicitation>()

/** @param inFlight all calls of the connection: over pipes a question does not name its call, so only one may run. */
export async function answerTo(
  { params }: ElicitRequest,
  inFlight: ReadonlySet<Elicitation>,
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
  if (JSON.stringify(question).length > MAX_LENGTH) return { action: 'decline' }
  const at = call.left.findIndex((it) => JSON.stringify(it) === JSON.stringify(question))
  const [found] = at === -1 ? [] : call.left.splice(at, 1)
  const { verdict = 'approved' } = call.decision ?? {}
  if (found !== undefined && (verdict === 'approved' || found !== call.decided.at(-1)))
    return { action: 'accept', content: { ...question.answer } }
  // After a no, no further question is asked.
  if (verdict !== 'approved') return { action: verdict === 'denied' ? 'decline' : 'cancel' }
  call.open ??= question
  return { action: 'cancel' }
}

type Form = Extract<ElicitRequest['params'], { requestedSchema: unknown }>['requestedSchema']

function questionOf(message: string, { properties, required = [] }: Form): ElicitationQuestion | undefined {
  const answer: Record<string, string | number | boolean | string[]> = {}
  const labels: Record<string, string> = {}
  for (const [name, field] of Object.entries(properties)) {
    if (field.default !== undefined) answer[name] = field.default
    else if (field.type === 'boolean') answer[name] = true
    else if (required.includes(name)) return undefined
    const label = [field.title, field.description].filter((it) => it !== undefined).join(': ')
    if (label !== '' && Object.hasOwn(answer, name)) labels[name] = label
  }
  return { message, labels, answer }
}
