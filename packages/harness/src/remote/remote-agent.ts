// A remote agent as a tool, over the Agent Protocol. The task id is the operation id of the call, so that a crash on
// either side never starts it twice.
import { setTimeout as delay } from 'node:timers/promises'
import { needsApproval, OxbowError, type Tool, type ToolContext, type ToolResult, tool } from '@oxbow/core'
import {
  anything,
  callable,
  checkFields,
  count,
  defined,
  type Fields,
  listOf,
  notNegative,
  oneOf,
  permissionId,
  positive,
  text,
} from '@oxbow/core/internal'
import type { PerCall, RemoteAgentOptions } from './options.ts'
import { progressOf } from './progress.ts'
import { type RemoteCall, type RemoteEvent, type RemoteTask, type RemoteTasks, remoteTasks } from './wire.ts'

const FIELDS: Fields<RemoteAgentOptions> = {
  name: anything,
  description: anything,
  url: anything,
  // They may hold a key.
  headers: anything,
  agentId: text,
  attributes: anything,
  deny: listOf(text),
  onApproval: (value, path) => (typeof value === 'function' ? undefined : oneOf('ask', 'deny')(value, path)),
  onEvent: callable,
  timeoutMs: positive,
  patienceMs: notNegative,
  maxDepth: count,
  permission: permissionId,
  approver: permissionId,
}

/** Default of `timeoutMs`. The turn's own time limit applies too. */
const TIMEOUT_MS = 10 * 60_000
const PATIENCE_MS = 60_000
const MAX_DEPTH = 5
/** The first delay before a broken connection is retried, and the longest. */
const RETRY_MS = 200
const MAX_RETRY_MS = 5_000
/** How long a cancelled call may take to notify the remote. */
const CANCEL_MS = 400

/**
 * A tool that gives a task to an agent of another service and returns its answer. The remote's activity is shown as
 * progress; its task is cancelled with the call; an empty, failed or lost task is an error to the model, never an empty
 * answer.
 *
 * @throws OxbowError `tool_invalid`, naming the option
 * @example
 * remoteAgent({ name: 'researcher', description: 'Researches a question.', url: 'http://research.internal:8080' })
 */
export function remoteAgent(options: RemoteAgentOptions): Tool {
  const invalid = (what: string) => new OxbowError('tool_invalid', `remoteAgent(): ${what}`)
  checkFields(options, FIELDS, invalid)
  const { name, description, url, timeoutMs = TIMEOUT_MS, permission, approver } = options
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw invalid('url must be the address of a service, for example http://research.internal:8080')
  const connect = async (context: ToolContext): Promise<RemoteTasks> =>
    remoteTasks(name, url, (await perCall(options.headers, context)) ?? {}, context.signal)

  return tool({
    name,
    description,
    effects: ['delegate'],
    timeoutMs,
    input: {
      type: 'object',
      properties: {
        task: { type: 'string', minLength: 1, description: 'What to do, with everything it needs to know.' },
      },
      required: ['task'],
      additionalProperties: false,
    },
    ...defined({ permission, approver }),
    async run(input, context) {
      const remote = await connect(context)
      try {
        return await delegate(options, remote, String(input.task), context)
      } catch (error) {
        if (context.signal.aborted && isMeantForGood(context.signal.reason))
          await Promise.race([remote.cancel(context.operationId), delay(CANCEL_MS)]).catch(() => {})
        throw error
      }
    },
    // Submitting the task again under its id is always safe: it continues, or returns its result.
    async reconcile(operationId, _input, context) {
      const remote = await connect(context)
      const task = await remote.task(operationId).catch(() => undefined)
      if (task?.status === 'success') return { status: 'done', result: resultOf(name, task) }
      return { status: 'not_done' }
    },
    async withdraw(operationId, context) {
      await (await connect(context)).cancel(operationId)
    },
  })
}

/** A process that stops leaves the task to its successor; a worker that lost its claim leaves it to the new one. */
function isMeantForGood(reason: unknown): boolean {
  return !(reason instanceof OxbowError && (reason.code === 'shutdown' || reason.code === 'claim_lost'))
}

async function perCall<T>(given: PerCall<T> | undefined, context: ToolContext): Promise<T | undefined> {
  return typeof given === 'function' ? (given as (context: ToolContext) => T | Promise<T>)(context) : given
}

async function delegate(
  options: RemoteAgentOptions,
  remote: RemoteTasks,
  input: string,
  context: ToolContext,
): Promise<ToolResult> {
  const { operationId: taskId, principal, session, decision } = context
  const depth = depthOf(context) + 1
  const { maxDepth = MAX_DEPTH } = options
  if (depth > maxDepth)
    throw new OxbowError('remote_depth', `This task has already been passed on ${maxDepth} times. Do it yourself.`)
  const patience = patiently(options.patienceMs ?? PATIENCE_MS, context.signal)
  const attributes = await perCall(options.attributes, context)
  await patience(() =>
    remote.submit({
      task_id: taskId,
      ...defined({ agent_id: options.agentId }),
      input,
      context: {
        user_id: principal.user,
        parent_session_id: session.session,
        delegation_depth: depth,
        stream: true,
        detail: 'full',
        deny_rules: [...context.denyRules, ...(options.deny ?? [])].map((rule) => ({
          tool_name: rule,
          behavior: 'DENY',
          source: 'parent',
        })),
        ...defined({ attributes }),
      },
    }),
  )
  if (decision !== undefined) {
    const { verdict, reason } = decision
    const given = { approved: verdict === 'approved', reason: reason ?? `${verdict} by the user of the calling agent` }
    await patience(() =>
      remote.resume(
        taskId,
        askedCalls(decision.arguments).map((it) => ({ ...it, ...given })),
      ),
    )
  }

  const show = progressOf(options, context)
  for (let after = 0; ; ) {
    const before = after
    await patience(async () => {
      after = await watch(remote, taskId, after, show)
    })
    const task = await patience(() => remote.task(taskId))
    if (task === undefined)
      throw new OxbowError('remote_lost', `The remote agent ${options.name} no longer knows the task.`)
    if (task.status === 'awaiting_confirm' && task.waiting.length > 0) {
      const asks = await decide(options, remote, taskId, task.waiting, context)
      if (asks !== undefined) return asks
    } else if (isOver(task)) return resultOf(options.name, task)
    // The server ended its stream early, without anything new in it.
    else if (after === before) await delay(RETRY_MS, undefined, { signal: context.signal })
  }
}

/** Follows the events until the end or a pause. Resolves with the number of the last one. */
async function watch(
  remote: RemoteTasks,
  taskId: string,
  after: number,
  show: (event: RemoteEvent) => void,
): Promise<number> {
  let at = after
  try {
    for await (const event of remote.events(taskId, after)) {
      at = event.seq
      show(event)
      if (event.type === 'REQUIRE_CONFIRM' || event.type === 'RUN_FINISHED' || event.type === 'RUN_ERROR') break
    }
  } catch (error) {
    if (!(error instanceof OxbowError)) throw error
    if (error.code === 'remote_no_stream') await remote.wait(taskId)
    // What had come is kept; only a stream that gives nothing at all uses up the patience.
    else if (at === after) throw error
  }
  return at
}

/** Retries transient failures for a limited time. */
const patiently =
  (patienceMs: number, signal: AbortSignal) =>
  async <T>(work: () => Promise<T>): Promise<T> => {
    const begun = performance.now()
    for (let wait = RETRY_MS; ; wait = Math.min(wait * 2, MAX_RETRY_MS)) {
      try {
        return await work()
      } catch (error) {
        signal.throwIfAborted()
        if (!(error instanceof OxbowError && error.retryable) || performance.now() - begun + wait > patienceMs)
          throw error
      }
      await delay(wait, undefined, { signal })
    }
  }

async function decide(
  { name, onApproval = 'ask' }: RemoteAgentOptions,
  remote: RemoteTasks,
  taskId: string,
  calls: readonly RemoteCall[],
  context: ToolContext,
): Promise<ToolResult | undefined> {
  if (onApproval === 'ask')
    return needsApproval({
      arguments: { agent: name, calls },
      reason: `The agent ${name} waits for an approval of ${calls.map((it) => it.tool).join(', ')}.`,
    })
  const refuse = { approved: false, reason: 'The calling agent does not approve anything.' }
  const given = onApproval === 'deny' ? [] : await onApproval(calls, context)
  await remote.resume(
    taskId,
    calls.map(({ toolCallId }, index) => ({ ...(given[index] ?? refuse), toolCallId })),
  )
  return undefined
}

/** The caller's delegation depth. */
function depthOf({ attributes }: ToolContext): number {
  const kept = attributes['agentprotocol.context'] as { context?: { delegation_depth?: unknown } } | undefined
  const depth = kept?.context?.delegation_depth
  return typeof depth === 'number' && depth > 0 ? depth : 0
}

/** The waiting calls, from the journal. */
const askedCalls = ({ calls }: Readonly<Record<string, unknown>>): { toolCallId: string }[] =>
  (calls as readonly RemoteCall[]).map(({ toolCallId }) => ({ toolCallId }))

const isOver = ({ status }: RemoteTask): boolean => /^(success|error|failed|cancell?ed)$/.test(status)

/** @throws OxbowError `remote_empty`, `remote_failed`, `remote_cancelled` */
function resultOf(name: string, { status, result, error }: RemoteTask): string {
  if (/^cancell?ed$/.test(status))
    throw new OxbowError('remote_cancelled', `The task of the remote agent ${name} was stopped before it was complete.`)
  if (status !== 'success')
    throw new OxbowError('remote_failed', `The remote agent ${name} failed: ${error ?? 'no reason given'}`)
  if (result === undefined || result.trim() === '')
    throw new OxbowError(
      'remote_empty',
      `The remote agent ${name} ended without an answer. Do not assume that it did anything; tell the user.`,
    )
  return result
}
