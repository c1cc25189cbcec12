// The only way in which a tool reaches other sessions: those of its own children.

import type { Agent } from '../agents/agent-type.ts'
import { onAbort, whenAborted } from '../checks/abort.ts'
import { defined } from '../checks/defined.ts'
import type { EngineInternals } from '../engine-internals.ts'
import { OxbowError } from '../errors.ts'
import type { Delegation, EventBody, Principal } from '../events/types.ts'
import type { SessionLog } from '../journal/session-log.ts'
import { mayEverRun, policyOf } from '../permissions/gate.ts'
import { awaitsApproval, type ChildRecord, callOfApproval, type SessionState, type TurnState } from '../state/state.ts'
import type { CallingCall, ChildEnd, ChildOptions, Children, ChildView } from '../tools/child-sessions.ts'
import type { ApprovalRequest } from '../tools/needs-approval.ts'
import { eventsOfChild, stopChild } from './debts.ts'
import { endOf, handOffSchema, soFarText } from './hand-off.ts'
import { answerAbove, questionOf } from './rise.ts'
import { spentElsewhere } from './shared-budget.ts'
import { showChild } from './show.ts'

/** The turn that uses the port. */
export interface ParentTurn {
  readonly log: SessionLog
  readonly agent: Agent
  readonly turnId: string
  readonly signal: AbortSignal
  readonly context: { readonly attributes: Readonly<Record<string, unknown>> }
  turn(): TurnState
  write(build: (turn: TurnState, state: SessionState) => readonly EventBody[]): Promise<void>
}

const MAX_TASK = 200

export function childrenOf(engine: EngineInternals, caller: ParentTurn, asking: CallingCall): Children {
  const { log, agent, turnId } = caller
  const { callId, operationId, step, principal } = asking
  const keyOf = (session: string) => ({ ...log.key, session })
  /** Both ids derive from the position of the call: a repetition after a crash finds the child that it had started. */
  const digits = operationId.slice('op_'.length, 'op_'.length + 20)
  const own = { session: `agent_${digits}`, childTurnId: `task_${digits}` }

  const recordOf = (childTurnId: string): ChildRecord | undefined =>
    log.state.children.find((it) => it.childTurnId === childTurnId)

  /** The last task of a session that this one has opened. */
  function lastOf(session: string): ChildRecord {
    const found = log.state.children.findLast((it) => it.session === session)
    if (found !== undefined) return found
    const names = [...new Set(log.state.children.map((it) => it.session))].join(', ')
    throw new OxbowError(
      'unknown_child',
      `Unknown agent ${JSON.stringify(session)}. ${names === '' ? 'None has been started.' : `Started: ${names}.`}`,
    )
  }

  /** While the engine stops nothing new is begun; the next start repeats the call. */
  async function unlessStopping<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      if (engine.stopping) await whenAborted(caller.signal).promise
      throw error
    }
  }

  async function assertRoom({ maxDepth, maxChildren }: ChildOptions): Promise<Pick<Delegation, 'depth' | 'children'>> {
    const { delegation, childCount } = caller.turn()
    const depth = Math.min(maxDepth, delegation?.depth ?? maxDepth)
    const children = Math.min(maxChildren, delegation?.children ?? maxChildren)
    if ((delegation?.ancestors.length ?? 0) >= depth)
      throw new OxbowError('child_depth', `Tasks may be passed on ${depth} times at most. Do this one yourself.`)
    const elsewhere = await spentElsewhere(engine, log.key, caller.turn())
    const started = childCount + (elsewhere?.children ?? 0)
    if (started >= children)
      throw new OxbowError('child_limit', `${started} of ${children} agents have been started for this task.`)
    return { depth, children }
  }

  async function give(session: string, name: string, text: string, options: ChildOptions): Promise<ChildView> {
    const { childTurnId } = own
    if (recordOf(childTurnId) === undefined) {
      if (!agent.agents.some((it) => it.name === name))
        throw new OxbowError(
          'unknown_agent',
          `Unknown agent ${JSON.stringify(name)}. Available: ${agent.agents.map((it) => it.name).join(', ')}.`,
        )
      await assertRoom(options)
      const task = text.replace(/\s+/g, ' ').trim().slice(0, MAX_TASK)
      const opened = {
        turnId,
        callId,
        session,
        agent: name,
        childTurnId,
        task,
        background: options.background === true,
      }
      await caller.write((_turn, { children }) =>
        children.some((it) => it.childTurnId === childTurnId) ? [] : [{ type: 'child.opened', ...opened }],
      )
    }
    engine.faultPoint?.('child.opened')
    const record = recordOf(childTurnId)!
    if (record.closed === undefined) await start(record, text, options)
    return viewOf(record)
  }

  async function start(record: ChildRecord, text: string, options: ChildOptions): Promise<void> {
    const { session, childTurnId } = record
    const turn = caller.turn()
    const depth = Math.min(options.maxDepth, turn.delegation?.depth ?? options.maxDepth)
    const children = Math.min(options.maxChildren, turn.delegation?.children ?? options.maxChildren)
    const delegation: Delegation = {
      ancestors: [...(turn.delegation?.ancestors ?? []), ancestorOf(caller, turn, principal, options)],
      callId,
      depth,
      children,
      budget: turn.delegation?.budget ?? { ...agent.limits.budget },
    }
    const { after } = await engine.give({
      key: keyOf(session),
      agent: record.agent,
      turnId: childTurnId,
      task: text,
      output: handOffSchema,
      principal,
      attributes: caller.context.attributes,
      delegation,
    })
    await engine.using(keyOf(session), (it) => {
      const fresh = it.state.seq <= after + 8
      showChild(engine, log, record, step, it, fresh ? after : it.state.seq)
    })
  }

  async function statusOf(record: ChildRecord): Promise<ChildView['status']> {
    if (record.closed !== undefined) return record.closed
    return engine.withCurrentLog(keyOf(record.session), async (child) => {
      const { turn } = child.state
      return turn?.turnId === record.childTurnId && turn.paused?.reason === 'approval'
        ? 'waits for an approval'
        : 'running'
    })
  }

  async function viewOf(record: ChildRecord): Promise<ChildView> {
    const { session, agent: name, childTurnId, task, background } = record
    return { session, agent: name, childTurnId, task, background, status: await statusOf(record) }
  }

  /** It is made from the same events as `child.closed`. */
  const endingOf = (record: ChildRecord): Promise<ChildEnd & { readonly whole: string }> =>
    engine.withCurrentLog(keyOf(record.session), async (child) => {
      const { agent: name, session, childTurnId } = record
      const events = await eventsOfChild(child, childTurnId)
      if (events.length > 0) return endOf(name, session, childTurnId, events)
      const text = `The agent ${name} (${session}) was stopped before it began.`
      return { status: 'cancelled', text, whole: text }
    })

  async function wait(
    childTurnId: string,
    signal: AbortSignal,
    orQuestion = false,
  ): Promise<ChildEnd | ApprovalRequest> {
    const record = recordOf(childTurnId)
    if (record === undefined) throw new OxbowError('unknown_child', `Unknown task ${JSON.stringify(childTurnId)}.`)
    const leave = new AbortController()
    const either = AbortSignal.any([signal, leave.signal])
    const ended = seen(log, () => recordOf(childTurnId)?.closed, either)
    const asked = orQuestion
      ? engine.withCurrentLog(keyOf(record.session), async (child) => {
          return seen(child, ({ turn }) => askedIn(record, turn), either)
        })
      : new Promise<never>(() => {})
    try {
      const first = await Promise.race([ended, asked])
      return typeof first === 'string' ? await endingOf(record) : first
    } finally {
      leave.abort()
      await Promise.allSettled(orQuestion ? [ended, asked] : [ended])
    }
  }

  return {
    open: ({ agent: name, task, ...options }) => unlessStopping(() => give(own.session, name, task, options)),
    send: (session, message, options) =>
      unlessStopping(async () => {
        const last = lastOf(session)
        const joined = await engine.withCurrentLog(keyOf(session), async (child) => {
          return child.append((draft) => {
            if (draft.state.steered.some((it) => it.inputId === own.childTurnId)) return true
            const { turn } = draft.state
            // A task of an earlier turn has the authority of that turn, which may have been more than this one's.
            if (last.turnId !== turnId || turn?.turnId !== last.childTurnId || turn.interrupt !== undefined)
              return false
            const input = [{ type: 'text' as const, text: message }]
            draft.add({
              type: 'turn.steered',
              turnId: turn.turnId,
              inputId: own.childTurnId,
              input,
              principal,
              origin: 'agent',
            })
            return true
          })
        })
        if (joined) return { ...(await viewOf(last)), joined }
        return { ...(await give(session, last.agent, message, options)), joined }
      }),
    async list() {
      const last = new Map(log.state.children.map((it) => [it.session, it]))
      return Promise.all([...last.values()].map(viewOf))
    },
    wait: wait as Children['wait'],
    async detach(childTurnId) {
      let detached = false
      await caller.write((_turn, { children }) => {
        const record = children.find((it) => it.childTurnId === childTurnId)
        detached = record !== undefined && record.closed === undefined
        return detached && !record!.background ? [{ type: 'child.detached', turnId, callId, childTurnId }] : []
      })
      return detached
    },
    async output(session) {
      const record = lastOf(session)
      if (record.closed !== undefined) {
        const { status: ended, whole } = await endingOf(record)
        return { status: ended, text: whole }
      }
      const status = await statusOf(record)
      return engine.using(keyOf(session), async (child) => {
        const events = await eventsOfChild(child, record.childTurnId)
        return { status, text: soFarText(record.agent, soFar(events)) }
      })
    },
    async cancel(session) {
      const record = lastOf(session)
      if (record.closed !== undefined) return false
      await stopChild(engine, log, record)
      return true
    },
    async refuse({ verdict, reason, origin }) {
      if (origin === undefined) return
      const key = keyOf(origin.session)
      const answer = { verdict, ...defined({ reason }) }
      const delegation = await engine.withCurrentLog(key, async (child) => {
        const from = child.state.turn?.delegation
        await child.append((draft) => {
          const { turn } = draft.state
          const asks = callOfApproval(turn, origin.approvalId)
          if (turn === undefined || asks === undefined || !awaitsApproval(asks)) return
          draft.add({ type: 'approval.resolved', turnId: turn.turnId, approvalId: origin.approvalId, ...answer })
        })
        engine.ensureWorker(child)
        return from
      })
      await answerAbove(engine, log.key, delegation, origin, answer)
    },
  }
}

/** The policy for sessions below the calling turn: its own, and the one inherited from above. */
function ancestorOf(
  { log, agent, turnId }: ParentTurn,
  turn: TurnState,
  principal: Principal,
  { grant }: ChildOptions,
): Delegation['ancestors'][number] {
  const policy = policyOf(agent.policy, turn)
  const { mode, deny, ask, allow } = policy
  const texts = (rules: readonly { readonly text: string }[]) => rules.map((it) => it.text)
  // A turn cannot delegate rights that it does not have.
  const own = [...agent.tools.values()].filter((tool) => mayEverRun(tool, principal, policy))
  const effects = new Set(own.flatMap((it) => it.effects))
  for (const it of grant?.effects ?? []) effects.add(it)
  return {
    session: log.key.session,
    turnId,
    agent: agent.name,
    mode,
    deny: texts(deny),
    ask: texts(ask),
    allow: [...texts(allow), ...(grant?.allow ?? [])],
    effects: [...effects],
  }
}

function askedIn(
  { agent, session, childTurnId }: ChildRecord,
  turn: TurnState | undefined,
): ApprovalRequest | undefined {
  if (turn?.turnId !== childTurnId || turn.paused?.reason !== 'approval') return undefined
  return questionOf(agent, session, turn)
}

/** Waits until `check` finds something in the state. Rejects with the signal's reason. */
async function seen<T>(
  log: SessionLog,
  check: (state: SessionState) => T | undefined,
  signal: AbortSignal,
): Promise<T> {
  const reader = log.follow(log.state.seq, { fragments: false })
  const leave = (): void => void reader.return?.()
  const forget = onAbort(signal, leave)
  try {
    for (;;) {
      signal.throwIfAborted()
      const found = check(log.state)
      if (found !== undefined) return found
      await reader.next()
    }
  } finally {
    forget()
    leave()
  }
}

const MAX_SO_FAR = 4_000

/** The end of a child's text and calls, for readers before it is done. */
function soFar(events: readonly { readonly type: string }[]): string {
  const lines = (events as readonly EventBody[]).flatMap((it) =>
    it.type === 'model.finished'
      ? it.message.blocks.flatMap((block) =>
          block.type === 'text'
            ? [block.text]
            : block.type === 'call'
              ? [`calls ${block.tool} ${block.arguments}`]
              : [],
        )
      : it.type === 'call.finished'
        ? [`gave ${it.status}`]
        : [],
  )
  return lines.join('\n').slice(-MAX_SO_FAR)
}
