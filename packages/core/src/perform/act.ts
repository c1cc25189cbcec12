// The calls of one step: those that only read run side by side, the rest in the model's order.

import { setTimeout as delay } from 'node:timers/promises'
import type { CallOutcome } from '../agents/middleware.ts'
import { defined } from '../checks/defined.ts'
import { childrenOf } from '../children/port.ts'
import { sharedBudget } from '../children/shared-budget.ts'
import { OxbowError } from '../errors.ts'
import type { EventBody, FinishReason, InputBlock, Principal } from '../events/types.ts'
import { callIds } from '../journal/ids.ts'
import { asksNobody, denyTexts, policyOf } from '../permissions/gate.ts'
import { approvalNote, approvedWith } from '../state/approval-note.ts'
import { callDigest } from '../state/repeats.ts'
import { reduceAll, type SlotChange, slotAccess } from '../state/slots.ts'
import { type ApprovalState, type CallState, failuresOf, type TurnState } from '../state/state.ts'
import { parseAgain } from '../tools/arguments.ts'
import { loadArtifact, offload, readArtifact } from '../tools/artifacts.ts'
import { NeedsApproval, type ToolDecision } from '../tools/needs-approval.ts'
import { onlyReads, type Tool } from '../tools/tool.ts'
import { overBudgetForCall } from '../turn/budget.ts'
import { UNKNOWN_OUTCOME } from '../turn/decide.ts'
import type { TurnRun } from '../turn/turn-run.ts'
import { noWork } from './durable-work.ts'
import { asksMeanwhile, lostApprover, mayRun, mayRunAgain, refusal } from './may-run.ts'
import { failed, type GivenContext, runTool, SUSPENDED, succeed, withLimits } from './run-tool.ts'

/** Consecutive failures after which a tool is not offered again in the same turn. */
export const MAX_FAILURES = 3

export async function act(run: TurnRun, calls: readonly CallState[]): Promise<void> {
  for (const group of groups(run, calls)) {
    if (run.stopped !== undefined) return
    await inParallel(group, run.agent.limits.parallelReads, run, (call) => performCall(run, call))
  }
}

/** Neighbours that only read form a group; every other call is a group of its own, so that order holds around it. */
function groups(run: TurnRun, calls: readonly CallState[]): CallState[][] {
  const result: CallState[][] = []
  let reading = false
  for (const call of calls) {
    const tool = run.agent.tools.get(call.tool)
    const reads = tool === undefined || onlyReads(tool)
    if (reads && reading) result.at(-1)!.push(call)
    else result.push([call])
    reading = reads
  }
  return result
}

async function inParallel(
  calls: readonly CallState[],
  limit: number,
  run: TurnRun,
  work: (call: CallState) => Promise<void>,
): Promise<void> {
  const queue = [...calls]
  const worker = async (): Promise<void> => {
    for (let call = queue.shift(); call !== undefined; call = queue.shift()) {
      if (run.stopped !== undefined) return
      run.inFlight.add(call.callId)
      try {
        await work(call)
      } finally {
        run.inFlight.delete(call.callId)
      }
    }
  }
  const outcomes = await Promise.allSettled(Array.from({ length: Math.min(limit, calls.length) }, worker))
  const broken = outcomes.find((it) => it.status === 'rejected')
  if (broken !== undefined) throw broken.reason
}

async function performCall(run: TurnRun, call: CallState): Promise<void> {
  const startedAt = performance.now()
  const tool = run.agent.tools.get(call.tool)
  const context = { ...run.context, step: run.turn().step, call, tool }
  const beside: StoredWithOutcome = { before: [], changes: [] }
  const outcome = await run.agent.hooks.acting(context, () => outcomeOf(run, call, tool, beside))
  if (outcome.status === 'requested') {
    const now = run.turn().calls.find((it) => it.callId === call.callId)
    if (now?.external !== undefined || now?.approval !== undefined || now?.work !== undefined) return
    throw new OxbowError(
      'middleware_invalid',
      `A middleware answered "requested" for ${call.tool}, but no approval was requested.`,
    )
  }
  // The next start repeats or reconciles the call: that it was cut short here is not its outcome.
  if (run.stopped === 'shutdown' && (outcome.status === 'cancelled' || outcome.status === 'unknown')) return

  const { turnId } = run
  const { callId } = call
  const limit = tool === readArtifact ? Number.POSITIVE_INFINITY : run.agent.limits.maxResultLength
  const shown = await offload(run.files, run.log.key, callId, outcome.content, limit)
  run.writeAhead((turn, { slots }) => {
    // Tried again after a failed append that was stored all the same.
    if (isFinished(turn, callId)) return []
    const failures = failuresOf(turn, call.tool) + 1
    const givenUp = failed(outcome.status) && failures >= MAX_FAILURES && tool !== undefined
    const approved = outcome.status === 'denied' ? undefined : approvedWith(call)
    const content = [
      ...(approved ? [approvalNote(approved, tool?.secrets ?? [])] : []),
      ...shown.content,
      ...(givenUp ? [givenUpNotice(call.tool, failures)] : []),
      ...(isRepeated(turn, call, shown.content) ? [REPEATED] : []),
    ]
    const changed = outcome.status === 'success' ? reduceAll(slots, beside.changes) : {}
    return [
      ...beside.before,
      ...Object.entries(changed).map(([slot, value]) => ({
        type: 'state.changed' as const,
        turnId,
        slot,
        value,
        ...(beside.changes.some((it) => it.slot.name === slot && it.slot.handsUp) && { handsUp: true }),
      })),
      {
        type: 'call.finished',
        turnId,
        callId,
        status: outcome.status,
        content,
        ...(shown.artifact && { artifact: shown.artifact }),
        ...(outcome.error && { error: outcome.error }),
        durationMs: Math.round(performance.now() - startedAt),
      },
    ]
  })
}

/** Events and slot changes that are stored in the same append as the outcome of a call. */
interface StoredWithOutcome {
  /** Judgements that need no effect after them. */
  readonly before: EventBody[]
  /** Changes of the session's slots by the attempt that succeeded. */
  changes: readonly SlotChange[]
}

/** The same call with the same result in the last step and an earlier one: the third time, the model is informed. */
const isRepeated = ({ repeats }: TurnState, call: CallState, content: readonly InputBlock[]): boolean =>
  repeats.staleSteps > 0 && repeats.seen.includes(callDigest(call.tool, call.arguments, [...content]))

const REPEATED: InputBlock = {
  type: 'text',
  text: 'You have made this call before, with the same arguments and the same result. Do something else, or answer with what you have.',
}

const givenUpNotice = (tool: string, times: number): InputBlock => ({
  type: 'text',
  text: `${tool} has failed ${times} times in a row and is not available for the rest of this turn. Tell the user.`,
})

async function outcomeOf(
  run: TurnRun,
  call: CallState,
  tool: Tool | undefined,
  beside: StoredWithOutcome,
): Promise<CallOutcome> {
  if (call.resolved !== undefined) return { status: call.resolved.status, content: call.resolved.content }
  const turn = run.turn()
  if (call.started !== undefined) return recoverCall(run, call, tool, beside)
  const cut = CUT[turn.reply?.finishReason ?? 'stop']
  if (cut !== undefined) return refusal('answer_cut', `Not run: the answer was ${cut} before it was whole.`)
  if (!turn.toolsOffered || turn.options.toolChoice === 'none')
    return refusal('tools_not_offered', 'No more tools are available. Answer with what you have.')
  if (tool === undefined) {
    const names = [...run.agent.tools.keys()].join(', ')
    return refusal('unknown_tool', `Unknown tool ${JSON.stringify(call.tool)}. ${names ? `Tools: ${names}.` : ''}`)
  }
  if (failuresOf(turn, tool.name) >= MAX_FAILURES)
    return refusal('tool_given_up', `${tool.name} is not available for the rest of this turn.`)

  const tree = await sharedBudget(run)
  const spent =
    overBudgetForCall(turn, call, tool, run.agent.tools, run.agent.limits.budget) ??
    (tree && overBudgetForCall(tree.turn, call, tool, run.agent.tools, tree.budget, tree.started))
  if (spent !== undefined) {
    // Concurrent reads may finish: the turn ends after this step in any case.
    if (!onlyReads(tool)) run.stop('failure', spent)
    return refusal('budget_exceeded', spent.message)
  }

  const judgement = await mayRun(run, call, tool)
  if ('outcome' in judgement) {
    beside.before.push(...judgement.before)
    return judgement.outcome
  }
  const { turnId } = run
  const { callId } = call
  const { decided, input, principal, asks } = judgement
  if (asks !== undefined) {
    await run.write(() => [decided, asks])
    return { status: 'requested' }
  }
  if (tool.run === undefined) {
    const { arguments: given } = decided
    await run.write(() => [decided, { type: 'external.requested', turnId, callId, tool: tool.name, arguments: given }])
    return { status: 'requested' }
  }
  const operationId = operationOf(run, call)
  return runAttempts(run, call, tool, input, operationId, 1, beside, { principal, before: [decided] })
}

/** How often a tool may ask although approvals are unavailable before its call ends. */
const MAX_UNHEARD = 3

function stillAsking({ name }: Tool): CallOutcome {
  const message = `Not allowed: ${name} keeps asking for approval, but approvals are not available.`
  return { status: 'denied', content: [{ type: 'text', text: message }], error: { code: 'denied', message } }
}

/** The first wait before a call is tried again; each further one is twice as long. */
const RETRY_MS = 200

/** Runs the call, and an idempotent tool's again if it fails. Each attempt is stored before it runs. */
async function runAttempts(
  run: TurnRun,
  call: CallState,
  tool: Tool,
  input: unknown,
  operationId: string,
  first: number,
  beside: StoredWithOutcome,
  {
    principal,
    before = [],
    decision,
  }: { principal: Principal; before?: readonly EventBody[]; decision?: ToolDecision },
): Promise<CallOutcome> {
  const { turnId } = run
  const { callId } = call
  let answer = decision
  let unheard = 0
  for (let attempt = first; ; attempt++) {
    const started: EventBody = { type: 'call.started', turnId, callId, operationId, attempt }
    // Only a call that does more than read must be known to have started before it runs.
    const write = onlyReads(tool) ? run.writeAhead : run.write
    await write(() => (attempt === first ? [...before, started] : [started]))
    const { context, changes } = contextFor(run, call, principal, operationId, attempt)
    beside.changes = changes
    const outcome = await runTool(run, tool, input, { ...context, ...(answer && { decision: answer }) })
    if (outcome === SUSPENDED) return { status: 'requested' }
    if (outcome instanceof NeedsApproval) {
      if (asksNobody(policyOf(run.agent.policy, run.turn()))) {
        // Without exception: a call that would ask is denied.
        unheard += 1
        if (unheard > MAX_UNHEARD || run.stopped !== undefined) return stillAsking(tool)
        const { arguments: asked, origin } = outcome.request
        answer = {
          verdict: 'denied',
          reason: 'Approvals are not available here.',
          arguments: asked,
          ...(origin && { origin }),
        }
        continue
      }
      await run.write(() => [asksMeanwhile(run, call, tool, outcome.request, attempt)])
      return { status: 'requested' }
    }
    const again = outcome.status === 'error' || outcome.status === 'timed_out'
    if (!again || attempt - first >= tool.retries || run.stopped !== undefined) return outcome
    await delay(RETRY_MS * 2 ** (attempt - first), undefined, { signal: run.signal }).catch(() => {})
    if (run.stopped !== undefined) return outcome
  }
}

/** Reasons for an early end of an answer: its calls may be incomplete. */
const CUT: Partial<Record<FinishReason, string>> = { length: 'cut off', filtered: 'filtered', refusal: 'refused' }

const isFinished = (turn: TurnState, callId: string): boolean =>
  turn.calls.some((it) => it.callId === callId && it.finished !== undefined)

/** A call that had started in a dead process. It never silently runs twice. */
async function recoverCall(
  run: TurnRun,
  call: CallState,
  tool: Tool | undefined,
  beside: StoredWithOutcome,
): Promise<CallOutcome> {
  const { operationId, attempt } = call.started!
  const unknown: CallOutcome = { status: 'unknown', content: [{ type: 'text', text: UNKNOWN_OUTCOME }] }
  // The tool is gone, or its schema has changed: it can no longer receive the stored arguments.
  if (tool === undefined) return unknown
  const { approval } = call
  const edited = approval?.attempt === undefined ? approval?.resolved?.arguments : undefined
  const raw = edited === undefined ? call.arguments : JSON.stringify(edited)
  const parsed = await parseAgain(raw, call.decided!.arguments, tool)
  if (!parsed.ok) return unknown

  // Users who are no longer authorised may still learn the outcome of their calls.
  const may = approval?.resolved === undefined || (await run.refreshPrincipal())
  const principal = may ? run.principal : { ...run.principal, permissions: [], dataScope: [] }
  // A tool that stopped to ask has left nothing running; it may continue with its answer.
  if (approval?.attempt !== attempt && !tool.idempotent && !tool.durable) {
    const { reconcile } = tool
    if (reconcile === undefined) return unknown
    const { context, changes } = contextFor(run, call, principal, operationId, attempt)
    beside.changes = changes
    const ran = await withLimits(run, tool, (signal) =>
      reconcile(operationId, parsed.input as never, { ...context, ...noWork(tool), signal }),
    )
    if ('outcome' in ran || ran.value?.status === undefined || ran.value.status === 'unknown') return unknown
    if (ran.value.status === 'done') return succeed(run, tool, ran.value.result)
  }
  const decision = decisionFor(
    approval,
    may ? approval && (await lostApprover(run, approval)) : `${principal.user} is no longer authorised.`,
  )
  // A tool that asked receives the denial, so that it can abandon its work.
  if (may ? !(await mayRunAgain(run, call, tool, principal)) : decision === undefined) return unknown
  const options = { principal, ...(decision && { decision }) }
  return runAttempts(run, call, tool, parsed.input, operationId, attempt + 1, beside, options)
}

/** The decision on the tool's request; a denial if it no longer counts, for the reason `lost`. */
function decisionFor(approval: ApprovalState | undefined, lost: string | undefined): ToolDecision | undefined {
  if (approval?.attempt === undefined || approval.resolved === undefined) return undefined
  const { requested, resolved } = approval
  const asked = { arguments: requested.arguments, ...(requested.origin && { origin: requested.origin }) }
  if (lost !== undefined) return { ...asked, verdict: 'denied', reason: lost }
  const { verdict, reason } = resolved
  return { ...asked, verdict, ...defined({ reason }) }
}

/** How long a tool may take to withdraw its request. */
const WITHDRAW_MS = 5_000

/** The turn ends: tools that wait for a decision elsewhere are informed that none will come. */
export async function withdrawQuestions(run: TurnRun): Promise<void> {
  const waiting = run.turn().calls.filter((it) => it.finished === undefined && it.approval?.attempt !== undefined)
  for (const call of waiting) {
    const tool = run.agent.tools.get(call.tool)
    const { operationId, attempt } = call.started!
    if (tool?.withdraw === undefined || call.approval?.attempt !== attempt) continue
    const signal = AbortSignal.timeout(WITHDRAW_MS)
    const { context: given } = contextFor(run, call, run.principal, operationId, attempt)
    const context = { ...given, ...noWork(tool), signal }
    const withdrawing = (async () => tool.withdraw!(operationId, context))()
    await Promise.race([withdrawing, delay(WITHDRAW_MS, undefined, { ref: false })]).catch(run.report)
  }
}

const operationOf = (run: TurnRun, call: CallState): string =>
  callIds(run.log.key, run.turnId, run.turn().step, call.position).operationId

function contextFor(
  run: TurnRun,
  call: CallState,
  principal: Principal,
  operationId: string,
  attempt: number,
): { readonly context: GivenContext; readonly changes: readonly SlotChange[] } {
  const { turnId, log, files, context } = run
  const permission = run.agent.tools.get(call.tool)?.permission
  const { step } = run.turn()
  const { callId } = call
  const { access, changes } = slotAccess(run.agent, () => log.ahead.slots)
  const given: GivenContext = {
    principal,
    state: access,
    children: childrenOf(run.engine, run, { callId, operationId, step, principal }),
    ...defined({ permission }),
    attributes: context.attributes,
    denyRules: denyTexts(policyOf(run.agent.policy, run.turn())),
    session: log.key,
    turnId,
    callId,
    operationId,
    attempt,
    artifact: (id) => loadArtifact(files, log.key, id),
    progress(text) {
      run.touch()
      if (run.inFlight.has(callId)) log.publish({ type: 'progress.delta', turnId, step, callId, text })
    },
  }
  return { context: given, changes }
}
