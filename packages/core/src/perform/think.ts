// One call of the model.

import { onAbort } from '../checks/abort.ts'
import { defined } from '../checks/defined.ts'
import { sharedBudget } from '../children/shared-budget.ts'
import { OxbowError } from '../errors.ts'
import type { Block, EventBody, FinishReason, Message } from '../events/types.ts'
import { callIds, nameOfKey } from '../journal/ids.ts'
import { type LiveStep, liveStep } from '../journal/live-step.ts'
import {
  clippedName,
  type FailedAttempt,
  type ModelCallOptions,
  ModelError,
  type ModelReply,
  type ModelRequest,
  noUsage,
  soundUsage,
} from '../model.ts'
import { failuresOf, type TurnState } from '../state/state.ts'
import { overBudget } from '../turn/budget.ts'
import type { TurnRun } from '../turn/turn-run.ts'
import { MAX_FAILURES } from './act.ts'

export async function think(run: TurnRun): Promise<void> {
  const turn = run.turn()
  const tree = await sharedBudget(run)
  // Usage of compaction since the start of the step counts too.
  const spent = overBudget(turn, run.agent.limits.budget) ?? (tree && overBudget(tree.turn, tree.budget))
  if (spent !== undefined) return run.stop('failure', spent)
  const { step } = turn
  const { log, agent } = run
  const context = { ...run.context, step }
  const startedAt = performance.now()
  let firstOutputMs: number | undefined

  const live = liveStep(log.key, run.turnId, step)
  log.live = live
  const onDelta: ModelCallOptions['onDelta'] = (delta) => {
    firstOutputMs ??= performance.now() - startedAt
    run.touch()
    if (log.live === live) log.publish(live.push(delta))
  }

  const attempts: FailedAttempt[] = []
  const onFailedAttempt = (attempt: FailedAttempt) => {
    attempts.push(attempt)
    run.touch()
  }

  let reply: ModelReply | undefined
  let error: unknown
  try {
    run.faultPoint?.('model.before')
    const request = requestFor(run, turn, await systemPrompt(run, step))
    reply = await agent.hooks.reasoning(context, () =>
      agent.hooks.modelCall(request, { ...context, model: run.model.id }, (it) =>
        generate(run, live, it, { onDelta, onFailedAttempt }),
      ),
    )
    run.faultPoint?.('model.after')
  } catch (caught) {
    if (!(caught instanceof ModelError)) throw caught
    error = caught
    reply = caught.partial
  }
  // The next start calls the model again; nothing of this answer has been stored.
  if (run.stopped === 'shutdown' && error !== undefined) return

  const timing = {
    totalMs: Math.round(performance.now() - startedAt),
    ...(firstOutputMs !== undefined && { firstOutputMs: Math.round(firstOutputMs) }),
  }
  // Tried again after a failed append that was stored all the same.
  const event = finished(run, step, reply, error, { timing, ...(attempts.length > 0 && { attempts }) })
  run.writeAhead((now) => (now.step === step && now.reply !== undefined ? [] : [event]))
}

/** How long a model may take to notice that it was aborted. */
const ABORT_GRACE_MS = 1_000

/** The model's answer; any failure of a model becomes a ModelError with the partial answer. */
async function generate(
  run: TurnRun,
  live: LiveStep,
  request: ModelRequest,
  listeners: Pick<ModelCallOptions, 'onDelta' | 'onFailedAttempt'>,
): Promise<ModelReply> {
  const { model } = run
  const shown = (): ModelReply => ({ blocks: live.blocks(), finishReason: 'error', usage: noUsage, model: model.id })
  let timer: NodeJS.Timeout | undefined
  let forget = (): void => {}
  const abortGrace = new Promise<never>((_, reject) => {
    forget = onAbort(run.signal, () => {
      timer = setTimeout(() => {
        reject(new ModelError('cancelled', 'The model did not stop when asked to.', { partial: shown() }))
      }, ABORT_GRACE_MS)
    })
  })
  try {
    const reply = await Promise.race([
      model.generate(request, { signal: run.signal, session: nameOfKey(run.log.key), ...listeners }),
      abortGrace,
    ])
    if (WHOLE.has(reply.finishReason)) return reply
    const message = `The model ${model.id} ended its answer with ${JSON.stringify(reply.finishReason)}, which is not known as an end.`
    throw new ModelError('provider_error', message, { partial: { ...reply, finishReason: 'error' } })
  } catch (error) {
    if (error instanceof ModelError) throw error
    const message = `The model ${model.id} failed.`
    throw new ModelError('provider_error', message, { partial: shown(), cause: error })
  } finally {
    clearTimeout(timer)
    forget()
  }
}

/** An answer with any other finish reason has failed. */
const WHOLE: ReadonlySet<string> = new Set<FinishReason>(['stop', 'calls', 'length', 'refusal', 'filtered'])

export async function systemPrompt({ context: turn, log, agent }: TurnRun, step: number): Promise<string> {
  const context = { ...turn, step }
  const prompt = await agent.prompt({ ...context, slots: log.ahead.slots })
  return agent.hooks.systemPrompt(prompt, context)
}

/** A forced call is forced once: the model answers with its result. */
function choiceFor({ step, options }: TurnState): ModelRequest['toolChoice'] {
  const { toolChoice } = options
  return step === 1 || toolChoice === 'none' ? toolChoice : undefined
}

function requestFor(run: TurnRun, turn: TurnState, system: string): ModelRequest {
  const { agent, log } = run
  const usable = turn.toolsOffered ? agent.specs.filter((it) => failuresOf(turn, it.name) < MAX_FAILURES) : []
  const { output } = turn.options
  const toolChoice = usable.length > 0 ? choiceFor(turn) : undefined
  return {
    system,
    messages: log.ahead.messages,
    tools: usable,
    ...defined({ toolChoice }),
    ...agent.sampling,
    ...defined({ output }),
  }
}

function finished(
  run: TurnRun,
  step: number,
  reply: ModelReply | undefined,
  error: unknown,
  facts: Pick<Extract<EventBody, { type: 'model.finished' }>, 'timing' | 'attempts'>,
): EventBody {
  const cancelled = error !== undefined && run.stopped !== undefined
  const blocks: Block[] = reply?.blocks ?? []
  const message: Message = {
    // Client ids never contain a colon, so joined ids of two turns never collide.
    id: `${run.turnId}:${step}`,
    role: 'assistant',
    // Half a call never runs, and a provider would refuse it in the history.
    blocks: error === undefined ? withCallIds(run, step, blocks) : blocks.filter((it) => it.type !== 'call'),
    ...(error !== undefined && { partial: true }),
    model: clippedName(reply?.source ?? run.model.id),
  }
  return {
    type: 'model.finished',
    turnId: run.turnId,
    step,
    message,
    finishReason: error === undefined ? reply!.finishReason : cancelled ? 'cancelled' : 'error',
    usage: soundUsage(reply?.usage),
    model: clippedName(reply?.model ?? run.model.id),
    ...facts,
    ...(error instanceof OxbowError && !cancelled && { error: failureOf(error, run) }),
  }
}

const failureOf = (error: OxbowError, run: TurnRun) => ({
  code: error.code,
  message: error.message,
  reference: run.report(error),
  ...(error.retryable && { retryable: true }),
})

function withCallIds(run: TurnRun, step: number, blocks: readonly Block[]): Block[] {
  let position = 0
  return blocks.map((it) =>
    it.type === 'call'
      ? { ...it, tool: clippedName(it.tool), callId: callIds(run.log.key, run.turnId, step, position++).callId }
      : it,
  )
}
