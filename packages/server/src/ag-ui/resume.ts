// Interprets a run in the state of its thread: new input, or answers that resume a turn.
import { hash } from 'node:crypto'
import {
  type ApprovalDecision,
  type Event,
  findTurn,
  mayDecide,
  OxbowError,
  openApprovals,
  type Principal,
  type Session,
  type SessionState,
  turnEvents,
  userId,
} from '@oxbow/core'
import { mayActFor } from '@oxbow/core/internal'
import { type FoundApproval, findApproval } from '../approvals/find.ts'
import { HttpError } from '../http/errors.ts'
import { LAST_IS_USER, type RunCommand } from './input.ts'
import { decisionOf } from './interrupts.ts'
import type { TurnPosition } from './turn-stream.ts'

interface Answer {
  readonly found: FoundApproval
  /** Undefined: there is nothing to decide, or the user may not decide. */
  readonly decision: ApprovalDecision | undefined
}

export interface Plan {
  readonly turnId: string
  readonly warnings: readonly string[]
  /** Executes the plan. `after`: the last event that the reader has. */
  begin(after: number | undefined): Promise<TurnPosition>
}

/**
 * @throws HttpError 400 when the run has neither input nor answers
 * @throws OxbowError `resume_invalid`, or as `Session.decide`
 */
export async function planOf(session: Session, command: RunCommand, principal: Principal): Promise<Plan> {
  const { turnId, text, resume } = command
  const state = await session.state()
  const open = openApprovals(state.turn)
  const externals = openExternals(state).filter((it) => resultFor(it, command) !== undefined)
  // A run whose text joined a turn together with answers is identified by those answers.
  const again = findTurn(state, turnId)?.turnId === turnId

  const entries = again ? [] : resume
  const ids = entries.map((it) => it.interruptId)
  const twice = ids.find((it, index) => ids.indexOf(it) !== index)
  if (twice !== undefined) throw invalid(`resume answers ${twice} twice.`)
  const found = new Map<string, FoundApproval>()
  for (const it of ids) {
    const known = await findApproval(session, state, it)
    if (known !== undefined) found.set(it, known)
  }
  if (!again) {
    const missing = open.map((it) => it.approvalId).filter((it) => !found.has(it))
    // A run that only repeats earlier decisions is a retry: the call has asked for something else since.
    const retried = text === undefined && found.size > 0 && [...found.values()].every((it) => it.resolved !== undefined)
    if (!retried && missing.length > 0 && (text !== undefined || resume.length > 0))
      throw invalid(`This thread is waiting for ${missing.join(', ')}. Answer each open interrupt in resume.`)
  }
  const current = [...found.values()].filter((it) => it.requested.turnId === state.turn?.turnId)
  const past = [...found.values()].find((it) => it.requested.turnId !== state.turn?.turnId)
  const warnings = ids
    .filter((it) => !found.has(it))
    .map((it) => `resume names ${JSON.stringify(it.slice(0, 100))}, which is not an interrupt of this thread.`)

  if (current.length === 0 && externals.length === 0) {
    if (text !== undefined && (past === undefined || isNew(command, [past.requested.callId])))
      return { turnId, warnings, begin: (after) => begun(session, command, text, principal, after) }
    if (past !== undefined) return continued(session, state, command, principal, [past], warnings)
    if (resume.length > 0) throw invalid(`${warnings.join(' ')} Nothing can be resumed.`)
    throw new HttpError(400, 'invalid_request', `messages: ${LAST_IS_USER}`)
  }
  return continued(session, state, command, principal, current, warnings)
}

/** The attribute of a turn with a digest of the message that began it: ids of clients stay out of the journal. */
const MESSAGE = 'agui.message'
const digestOf = (messageId: string): string => hash('sha256', messageId).slice(0, 32)

/**
 * The turn of a run. The same run with the same message is a retry of the same turn. Clients that give every run the
 * same id are identified by their messages: once the run has ended, another message begins a turn with its own id.
 */
export async function identified(session: Session, command: RunCommand): Promise<RunCommand> {
  const { runId, turnId, messageId, text } = command
  if (text === undefined) return command
  const state = await session.state()
  const known = findTurn(state, turnId)
  if (known === undefined || !known.ended || known.turnId !== turnId) return command
  for await (const event of turnEvents((after) => session.events(after), state, turnId, known.startedSeq)) {
    const began = event.type === 'turn.started' ? event.options.attributes?.[MESSAGE] : undefined
    if (began !== undefined && began !== digestOf(messageId))
      return { ...command, turnId: userId(JSON.stringify([runId, messageId])) }
  }
  return command
}

/** Submits new input. */
async function begun(
  session: Session,
  { turnId, runId, messageId }: RunCommand,
  text: string,
  principal: Principal,
  after: number | undefined,
): Promise<TurnPosition> {
  const { accepted, after: startedAfter } = await session
    .submit(text, { turnId, principal, surface: 'ag-ui', attributes: { [MESSAGE]: digestOf(messageId) } })
    .catch((error: unknown) => {
      throw error instanceof OxbowError && error.code === 'turn_conflict'
        ? new OxbowError(
            'turn_conflict',
            `runId ${JSON.stringify(runId)} was already used for a different message in this thread. Use a new runId.`,
          )
        : error
    })
  return { startedAfter, after, repeated: accepted === 'duplicate', queued: accepted === 'queued' }
}

/** Resumes a turn; its stream begins after the last event that the reader has seen. */
async function continued(
  session: Session,
  state: SessionState,
  command: RunCommand,
  principal: Principal,
  known: readonly FoundApproval[],
  warnings: readonly string[],
): Promise<Plan> {
  const answers = known.map((found) => ({ found, decision: answerTo(found, command, principal) }))
  // Check all answers before deciding on the first.
  for (const it of answers) await give(it, (id, decision) => session.checkDecision(id, decision, { principal }))
  const externals = openExternals(state).filter((it) => resultFor(it, command) !== undefined)
  if (externals.length > 0 && !mayActFor(principal, state.turn!.principal))
    throw new OxbowError(
      'result_forbidden',
      'You may not send the results of these calls: another user made the request.',
    )
  const turnId = known[0]?.requested.turnId ?? state.turn!.turnId
  const asked = [...known.map((it) => it.requested.callId), ...externals]
  const questions = new Set([...known.map((it) => it.requested.approvalId), ...externals])
  const startedAfter = findTurn(state, turnId)!.startedSeq - 1

  return {
    turnId,
    warnings,
    async begin(after) {
      const now = await session.state()
      const events = await Array.fromAsync(turnEvents((at) => session.events(at), now, turnId))
      // Submitted before the first answer, because the answers resume the turn.
      if (command.text !== undefined && isNew(command, asked) && state.turn?.turnId === turnId)
        await session.submit(command.text, { turnId: command.turnId, principal, surface: 'ag-ui', whenBusy: 'steer' })
      for (const callId of externals) {
        const { content, failed } = resultFor(callId, command)!
        await session.resolve(callId, { status: failed ? 'error' : 'success', content }, { principal })
      }
      for (const it of answers) await give(it, (id, decision) => session.decide(id, decision, { principal }))
      const from = endOfRun(events, questions) ?? state.seq
      return { startedAfter, after: Math.max(from, after ?? 0), repeated: true, queued: false }
    },
  }
}

/** The end of the run that asked: the first pause after its last question. */
function endOfRun(events: readonly Event[], questions: ReadonlySet<string>): number | undefined {
  const last = events.findLastIndex(
    (it) =>
      (it.type === 'approval.requested' && questions.has(it.approvalId)) ||
      (it.type === 'external.requested' && questions.has(it.callId)),
  )
  return events.slice(last + 1).find((it) => it.type === 'turn.paused')?.seq
}

/** The decision in an entry. Repeating the same decision decides nothing. */
function answerTo(
  { requested, resolved, asker: whose }: FoundApproval,
  { resume }: RunCommand,
  principal: Principal,
): ApprovalDecision | undefined {
  const { approvalId, expiresAt, approver } = requested
  const { status, payload } = resume.find((it) => it.interruptId === approvalId)!
  const may = mayDecide(requested, principal, whose)
  if (status === 'cancelled') {
    // A user who may not decide cancels the entry only to check the state.
    if (resolved !== undefined || !may || expiresAt <= Date.now()) return undefined
    return { verdict: 'denied', reason: 'Left without an answer.' }
  }
  const decision = decisionOf(payload)
  if (typeof decision === 'string') throw invalid(`The answer to ${approvalId} is invalid: ${decision}.`)
  if (resolved?.verdict === decision.verdict) return undefined
  const hint = 'Answer it with the status "cancelled" to continue.'
  if (resolved?.verdict === 'expired' || (resolved === undefined && expiresAt <= Date.now()))
    throw new OxbowError('approval_expired', `Approval ${approvalId} has expired. ${hint}`)
  if (resolved !== undefined)
    throw new OxbowError('approval_resolved', `Approval ${approvalId} is already ${resolved.verdict}. ${hint}`)
  const needs = approver === undefined ? `is reserved for ${whose.user}` : `requires the permission ${approver}`
  if (!may) throw new OxbowError('approval_forbidden', `Deciding on ${approvalId} ${needs}. ${hint}`)
  return decision
}

async function give(
  { found, decision }: Answer,
  how: (approvalId: string, decision: ApprovalDecision) => Promise<unknown>,
): Promise<void> {
  if (decision === undefined) return
  try {
    await how(found.requested.approvalId, decision)
  } catch (error) {
    // A concurrent decision with the same verdict won.
    if (error instanceof OxbowError && error.details?.verdict === decision.verdict) return
    throw error
  }
}

/** Whether the message was written after the client had seen these calls. */
const isNew = ({ callsBefore }: RunCommand, calls: readonly string[]): boolean =>
  [...callsBefore].some((wire) => calls.some((callId) => isCall(wire, callId)))

const openExternals = ({ turn }: SessionState): string[] =>
  (turn?.calls ?? [])
    .filter((it) => it.external === true && it.resolved === undefined && it.finished === undefined)
    .map((it) => it.callId)

const resultFor = (callId: string, { results }: RunCommand) => {
  for (const [wire, result] of results) if (isCall(wire, callId)) return result
  return undefined
}

/** The calls of a repeated step have a suffix on the wire. */
const isCall = (wire: string, callId: string): boolean => wire === callId || wire.startsWith(`${callId}.`)

const invalid = (message: string) => new OxbowError('resume_invalid', message)
