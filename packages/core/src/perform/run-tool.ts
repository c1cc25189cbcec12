// Runs one tool under its time limit. It always returns, whatever the tool does.

import type { CallOutcome } from '../agents/middleware.ts'
import { onAbort } from '../checks/abort.ts'
import { describeErrors, isStandardSchema, validatorFor } from '../checks/json-schema.ts'
import { OxbowError, ToolError } from '../errors.ts'
import type { CallStatus, InputBlock } from '../events/types.ts'
import { NeedsApproval } from '../tools/needs-approval.ts'
import { resultBlocks } from '../tools/result-blocks.ts'
import { onlyReads, type Tool, type ToolContext } from '../tools/tool.ts'
import { timerMs } from '../turn/turn-clocks.ts'
import type { TurnRun } from '../turn/turn-run.ts'
import { durableWork, type WorkContext } from './durable-work.ts'

/** How long an aborted tool may take to say that it has stopped. */
const CANCEL_GRACE_MS = 500
const MAX_ERROR_LENGTH = 2_000

export const failed = (status: CallStatus): boolean => status !== 'success' && status !== 'cancelled'

export type Ran<T> = { readonly value: T } | { readonly outcome: Exclude<CallOutcome, { status: 'requested' }> }

/**
 * Gives `work` a signal that fires on the tool's time-out and on interruption, and does not wait for work that ignores
 * it. A result that comes later is thrown away.
 */
export async function withLimits<T>(
  run: TurnRun,
  tool: Tool,
  work: (signal: AbortSignal) => T | Promise<T>,
): Promise<Ran<T>> {
  const controller = new AbortController()
  let timedOut = false
  let stopWaiting: (outcome: Ran<T>) => void
  const given = new Promise<Ran<T>>((resolve) => {
    stopWaiting = resolve
  })
  let grace: NodeJS.Timeout | undefined
  const resume = run.suspendIdle()
  const timer = setTimeout(() => {
    timedOut = true
    controller.abort(new DOMException(`${tool.name} took longer than ${tool.timeoutMs} ms`, 'TimeoutError'))
    stopWaiting({ outcome: timeoutOf(tool) })
  }, timerMs(tool.timeoutMs))
  const abort = (): void => {
    controller.abort(run.signal.reason)
    if (onlyReads(tool)) stopWaiting({ outcome: cancelled(run, tool) })
    else grace = setTimeout(() => stopWaiting({ outcome: leftBehind }), CANCEL_GRACE_MS)
  }
  const forget = onAbort(run.signal, abort)

  const done = (async (): Promise<Ran<T>> => {
    try {
      return { value: await work(controller.signal) }
    } catch (error) {
      if (controller.signal.aborted && !timedOut) return { outcome: cancelled(run, tool) }
      return { outcome: errorOf(run, tool, error) }
    }
  })()
  let settled = false
  void done.then(() => {
    settled = true
  })
  try {
    return await Promise.race([done, given])
  } finally {
    resume()
    if (!settled && !onlyReads(tool)) run.leaveBehind(done)
    clearTimeout(timer)
    clearTimeout(grace)
    forget()
  }
}

/** What the engine gives to a tool; the rest depends on the run. */
export type GivenContext = Omit<ToolContext, 'signal' | keyof WorkContext>

/** The tool sleeps or waits for a signal, and runs again after it. */
export const SUSPENDED = Symbol('suspended')

export async function runTool(
  run: TurnRun,
  tool: Tool,
  input: unknown,
  context: GivenContext,
): Promise<CallOutcome | NeedsApproval | typeof SUSPENDED> {
  const ran = await withLimits(run, tool, async (signal) => {
    run.faultPoint?.('tool.before')
    const work = durableWork(run, tool, context, signal)
    const running = tool.run!(input as never, { ...context, ...work.context, signal })
    const result: unknown = tool.durable
      ? await Promise.race([running, work.suspended.then(() => SUSPENDED)])
      : await running
    run.faultPoint?.('tool.after')
    return result
  })
  if ('outcome' in ran) return ran.outcome
  if (ran.value === SUSPENDED) return SUSPENDED
  return ran.value instanceof NeedsApproval ? ran.value : succeed(run, tool, ran.value)
}

/** A result as the model sees it, if it is what the tool promises. */
export async function succeed(run: TurnRun, tool: Tool, result: unknown): Promise<CallOutcome> {
  try {
    if (result instanceof Error) throw result
    const wrong = await outputFault(tool, result)
    if (wrong !== undefined) throw new ToolError(`${tool.name} gave a result that breaks its output schema: ${wrong}`)
    return { status: 'success', content: resultBlocks(result) }
  } catch (error) {
    return errorOf(run, tool, error)
  }
}

async function outputFault(tool: Tool, result: unknown): Promise<string | undefined> {
  const { output } = tool
  if (output === undefined) return undefined
  if (isStandardSchema(output)) {
    const { issues } = await output['~standard'].validate(result)
    return issues?.map((it) => it.message).join('; ')
  }
  const validate = await validatorFor(output, `tool ${tool.name}, output`)
  return validate(result) ? undefined : describeErrors(validate)
}

const text = (value: string): InputBlock[] => [{ type: 'text', text: value }]

/**
 * The model reads errors that were written for it. Others may hold internal details, so they go to the log.
 */
function errorOf(run: TurnRun, tool: Tool, error: unknown): Exclude<CallOutcome, { status: 'requested' }> {
  const known = error instanceof OxbowError
  const code = known ? error.code : 'tool_error'
  const words = known ? error.message : `${tool.name} failed. Reference: ${run.report(error)}`
  const message = words.slice(0, MAX_ERROR_LENGTH) || 'failed'
  // The tool no longer knows the state of the operation that it had started elsewhere.
  if (code === 'outcome_unknown' || code === 'steps_changed')
    return { status: 'unknown', content: text(message), error: { code, message } }
  return { status: 'error', content: text(`Error: ${message}`), error: { code, message } }
}

function timeoutOf(tool: Tool): Exclude<CallOutcome, { status: 'requested' }> {
  const message = `${tool.name} did not finish within ${tool.timeoutMs} ms and was stopped.`
  const caution = onlyReads(tool) ? '' : ' It may have taken effect: check before repeating it.'
  return { status: 'timed_out', content: text(message + caution), error: { code: 'timed_out', message } }
}

/** The outcome of a tool that stopped on request. Its effects up to then are not known. */
function cancelled(run: TurnRun, tool: Tool): Exclude<CallOutcome, { status: 'requested' }> {
  const why = run.stopped === 'interrupt' ? 'Cancelled by the user' : 'Stopped together with its turn'
  const caution = onlyReads(tool) ? '' : ' while it ran. It may have taken effect, wholly or in part'
  return { status: 'cancelled', content: text(`${why}${caution}.`) }
}
const leftBehind = {
  status: 'unknown',
  content: text('Interrupted while it ran, and it did not confirm that it stopped. It may have taken effect.'),
} as const
