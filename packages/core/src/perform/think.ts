// One call of the model.
import { OxbowError } from '../errors.ts'
import type { Block, EventBody, Message } from '../events/types.ts'
import { callIds } from '../ids.ts'
import { liveStep } from '../live-step.ts'
import { ModelError, type ModelReply, type ModelRequest, noUsage } from '../model.ts'
import type { TurnState } from '../state.ts'
import type { TurnRun } from '../turn-run.ts'
import { MAX_FAILURES } from './act.ts'

export async function think(run: TurnRun): Promise<void> {
  const turn = run.turn()
  const { step } = turn
  const { log, agent } = run
  const context = { ...run.context, step }
  const startedAt = performance.now()
  let firstOutputMs: number | undefined

  const live = liveStep(log.key, run.turnId, step)
  log.live = live
  const onDelta: Parameters<typeof agent.model.generate>[1]['onDelta'] = (delta) => {
    firstOutputMs ??= performance.now() - startedAt
    run.touch()
    if (log.live === live) log.publish(live.push(delta))
  }

  let reply: ModelReply | undefined
  let error: unknown
  try {
    run.faultPoint?.('model.before')
    const system = await agent.hooks.systemPrompt(agent.instructions, context)
    const request = requestFor(run, turn, system)
    reply = await agent.hooks.reasoning(context, () =>
      agent.hooks.modelCall(request, context, (it) => agent.model.generate(it, { signal: run.signal, onDelta })),
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
  await run.write(() => [finished(run, step, reply, error, timing)])
}

function requestFor(run: TurnRun, turn: TurnState, system: string): ModelRequest {
  const { agent, log } = run
  const usable = turn.toolsOffered ? agent.specs.filter((it) => (turn.failures[it.name] ?? 0) < MAX_FAILURES) : []
  const { output } = turn.options
  return {
    system,
    messages: log.state.messages,
    tools: usable,
    ...agent.sampling,
    ...(output !== undefined && { output }),
  }
}

function finished(
  run: TurnRun,
  step: number,
  reply: ModelReply | undefined,
  error: unknown,
  timing: Extract<EventBody, { type: 'model.finished' }>['timing'],
): EventBody {
  const cancelled = error !== undefined && run.stopped !== undefined
  const blocks: Block[] = reply?.blocks ?? []
  const message: Message = {
    id: `${run.turnId}.${step}`,
    role: 'assistant',
    // Half a call never runs, and a provider would refuse it in the history.
    blocks: error === undefined ? withCallIds(run, step, blocks) : blocks.filter((it) => it.type !== 'call'),
    ...(error !== undefined && { partial: true }),
  }
  return {
    type: 'model.finished',
    turnId: run.turnId,
    step,
    message,
    finishReason: error === undefined ? reply!.finishReason : cancelled ? 'cancelled' : 'error',
    usage: reply?.usage ?? noUsage,
    model: reply?.model ?? run.agent.model.id,
    timing,
    ...(error instanceof OxbowError && !cancelled && { error: failureOf(error, run) }),
  }
}

const failureOf = (error: OxbowError, run: TurnRun) => ({
  code: error.code,
  message: error.message,
  reference: run.report(error),
})

function withCallIds(run: TurnRun, step: number, blocks: readonly Block[]): Block[] {
  let position = 0
  return blocks.map((it) =>
    it.type === 'call' ? { ...it, callId: callIds(run.log.key, run.turnId, step, position++).callId } : it,
  )
}
