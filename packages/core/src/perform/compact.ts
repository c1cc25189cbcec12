// Makes the conversation shorter before the model is called.

import type { Agent } from '../agents/agent-type.ts'
import {
  type CompactedBody,
  type Compaction,
  type CompactionReason,
  type CompactionRequest,
  compactedEvent,
} from '../agents/compactor.ts'
import type { ModelCallContext } from '../agents/middleware.ts'
import { whenAborted } from '../checks/abort.ts'
import { OxbowError } from '../errors.ts'
import type { Principal } from '../events/types.ts'
import { nameOfKey } from '../journal/ids.ts'
import type { SessionLog } from '../journal/session-log.ts'
import type { ModelCallOptions } from '../model.ts'
import type { TurnRun } from '../turn/turn-run.ts'
import { systemPrompt } from './think.ts'

export async function compact(run: TurnRun, { step, reason }: { step: number; reason: CompactionReason }) {
  const { log, agent, turnId, signal } = run
  const conversation = log.ahead
  run.faultPoint?.('compaction.before')
  const compaction = await abandonedOn(
    signal,
    agent.compactor!.compact({
      conversation,
      reason,
      system: await systemPrompt(run, step),
      tools: agent.specs,
      id: `${turnId}:${step}.compacted`,
      ...asking(
        agent,
        { ...run.context, step },
        { signal, session: nameOfKey(log.key), onDelta: run.touch, onFailedAttempt: run.touch },
      ),
    }),
  )
  run.faultPoint?.('compaction.after')
  // The next start compacts again; a turn that is stopped needs it no more.
  if (run.stopped === 'shutdown') return
  await run.write((_, now) => {
    if (compaction === undefined || now.messages !== conversation.messages) return []
    const event = compactedEvent({ turnId, step, reason }, conversation.messages, compaction)
    return compaction.full === undefined ? [event] : [event, { type: 'turn.failed', turnId, error: compaction.full }]
  })
}

/** Compacts a session without an open turn, on request. */
export async function compactBetweenTurns(
  log: SessionLog,
  agent: Agent,
  principal: Principal,
  { dryRun = false, signal = new AbortController().signal }: { dryRun?: boolean; signal?: AbortSignal },
): Promise<CompactedBody> {
  const conversation = log.state
  const turnId = conversation.finished.at(-1)?.turnId
  const { compactor } = agent
  if (compactor === undefined)
    throw new OxbowError('no_compaction', `The agent ${agent.name} has no compaction. Add the compaction capability.`)
  if (conversation.turn !== undefined) throw busy(conversation.turn.turnId)
  if (turnId === undefined) throw new OxbowError('unknown_session', 'Nothing has been said in this session yet.')
  const about = { session: log.key, turnId, agent: agent.name, principal, attributes: {}, signal }
  const compaction = await compactor.compact({
    conversation,
    reason: 'manual',
    system: await agent.prompt({ ...about, slots: conversation.slots }),
    tools: agent.specs,
    // A session may be compacted more than once after a turn.
    id: `${turnId}:${conversation.seq}.compacted`,
    ...(dryRun
      ? { call: undefined }
      : asking(agent, { ...about, step: 0 }, { signal, session: nameOfKey(log.key), onDelta: () => {} })),
  })
  const event = compactedEvent({ turnId, step: 0, reason: 'manual' }, conversation.messages, compaction)
  if (dryRun) return { ...event, messages: undefined, memory: undefined }
  if (compaction.messages !== undefined)
    await log.append((draft) => {
      if (draft.state.turn !== undefined) throw busy(draft.state.turn.turnId)
      if (draft.state.messages !== conversation.messages) throw busy(draft.state.finished.at(-1)!.turnId)
      draft.add(event)
    })
  return event
}

const asking = (
  agent: Agent,
  context: Omit<ModelCallContext, 'model'>,
  call: ModelCallOptions,
): Pick<CompactionRequest, 'call' | 'generate'> => ({
  call,
  generate: (model, request) =>
    agent.hooks.modelCall(request, { ...context, model: model.id, summaryBy: model.id }, (it) =>
      model.generate(it, call),
    ),
})

const busy = (turnId: string): OxbowError =>
  new OxbowError('session_busy', `Turn ${turnId} is at work in this session: it compacts by itself when it must.`, {
    retryable: true,
  })

/** Undefined when the signal fires first, even when a model ignores it. */
async function abandonedOn(signal: AbortSignal, work: Promise<Compaction>): Promise<Compaction | undefined> {
  const { promise, forget } = whenAborted(signal)
  try {
    return await Promise.race([work, promise.then(() => undefined)])
  } catch (error) {
    if (signal.aborted) return undefined
    throw error
  } finally {
    forget()
  }
}
