// The one definition of everything that a journal may hold. The types, the JSON Schema and docs/reference/events.md
// come from here. Only borders import this file for its values; the engine imports only its types, so the hot path
// never loads zod.
import { z } from 'zod'

const text = z.object({ type: z.literal('text'), text: z.string() })

const thinking = z
  .object({
    type: z.literal('thinking'),
    text: z.string(),
    signature: z.string().optional().describe("The provider's signature; signed blocks are sent back byte for byte."),
    redacted: z.string().optional().describe('Opaque reasoning that only the provider can read.'),
  })
  .describe("The model's reasoning. Never part of the answer.")

const data = z
  .object({
    type: z.literal('data'),
    mediaType: z.string(),
    data: z.string().optional().describe('Base64.'),
    url: z.string().optional(),
    name: z.string().optional(),
  })
  .describe('An image or a file: either `data` or `url`.')

const call = z
  .object({
    type: z.literal('call'),
    callId: z.string().describe("Derived from session, turn, step and position; never the model's own id."),
    tool: z.string(),
    arguments: z.string().describe('Raw JSON text, exactly as the model wrote it.'),
    signature: z
      .string()
      .optional()
      .describe("The provider's signature of the reasoning behind the call, sent back unchanged."),
  })
  .describe('A tool call that the model proposes.')

const callStatus = z.enum(['success', 'error', 'denied', 'timed_out', 'cancelled', 'unknown'])

const result = z
  .object({
    type: z.literal('result'),
    callId: z.string(),
    tool: z.string(),
    status: callStatus,
    content: z.array(z.union([text, data])),
    approval: z
      .object({
        by: z.string(),
        reason: z.string().optional(),
        arguments: z.record(z.string(), z.unknown()).optional(),
      })
      .optional()
      .describe('The call was approved with a reason or with edited arguments.'),
  })
  .describe('The outcome of a call, as the model reads it.')

export const block = z.discriminatedUnion('type', [text, thinking, data, call, result])

export const message = z.object({
  id: z.string(),
  role: z.enum(['user', 'assistant', 'tool']),
  blocks: z.array(block),
  origin: z
    .enum(['agent', 'engine'])
    .optional()
    .describe(
      'The author of a message with the role `user` that the user did not write: another agent, or the engine.',
    ),
  partial: z
    .boolean()
    .optional()
    .describe('The answer was truncated or cancelled; this is the part that was streamed.'),
  model: z
    .string()
    .optional()
    .describe('The `provider:model` that wrote it. Its signatures and opaque reasoning are sent to no other model.'),
})

const value = z.union([z.string(), z.number(), z.null()])
const comparison = z
  .strictObject({
    $eq: value,
    $ne: value,
    $in: z.array(value),
    $nin: z.array(value),
    $lt: z.union([z.string(), z.number()]),
    $lte: z.union([z.string(), z.number()]),
    $gt: z.union([z.string(), z.number()]),
    $gte: z.union([z.string(), z.number()]),
  })
  .partial()

const ids = z.array(z.string())
const permissions = ids
  .optional()
  .describe('The scope applies only to tools whose permission id these cover. Default: all tools.')

export const dataScope = z
  .discriminatedUnion('type', [
    z.strictObject({ type: z.literal('all'), permissions }),
    z.strictObject({ type: z.literal('own'), permissions }),
    z.strictObject({ type: z.literal('department'), permissions }),
    z.strictObject({
      type: z.literal('department_and_below'),
      departments: ids.optional().describe('Ids of the subdepartments. If absent, the tool looks them up.'),
      permissions,
    }),
    z.strictObject({
      type: z.literal('custom'),
      departments: ids.optional(),
      role: z.string().optional().describe('Instead of departments: the tool looks up the departments of this role.'),
      permissions,
    }),
    z.strictObject({
      type: z.literal('conditions'),
      conditions: z
        .record(z.string(), z.union([value, comparison]))
        .describe('Conditions by column, in the form of `@casl/ability`. All must hold.'),
      permissions,
    }),
  ])
  .describe('Rows that a principal may see.')

export const principal = z
  .object({
    tenant: z.string().optional(),
    user: z.string(),
    department: z.string().optional(),
    roles: z.array(z.string()).optional(),
    permissions: z.array(z.string()).optional(),
    dataScope: z
      .array(dataScope)
      .optional()
      .describe('Rows that tools may show to the principal, combined with OR. Default: own rows. An empty list: none.'),
    credential: z
      .string()
      .optional()
      .describe(
        'Names the credential that was presented, so that its current rights can be checked later. Not a secret.',
      ),
  })
  .describe('Who acts. Set by the server, never by a request body, a model or a prompt.')

const inputBlocks = z.array(z.union([text, data]))

export const usage = z
  .object({
    inputTokens: z.number().describe('Input tokens that were not read from a cache.'),
    cacheReadTokens: z.number(),
    cacheWriteTokens: z.number(),
    outputTokens: z.number().describe('All output tokens, including reasoning.'),
    reasoningTokens: z.number().describe('Output tokens that were reasoning.'),
    estimated: z.boolean().describe('True if the provider sent no figures and these were counted by Oxbow.'),
    cost: z.number().optional().describe('US dollars. Absent if the price of any part is unknown.'),
  })
  .describe('Tokens of one model call, or of several.')

const failure = z.object({
  code: z.string(),
  message: z.string().describe('Safe to show to end users.'),
  reference: z.string().optional().describe('Finds the full error in the log.'),
  retryable: z.boolean().optional().describe('A retry may succeed.'),
})

const mode = z.enum(['default', 'accept-edits', 'explore', 'bypass', 'dont-ask'])

const spent = z
  .object({
    usage,
    toolCalls: z.number().int(),
    children: z.number().int().describe('Sub-agents that were started.'),
  })
  .describe('Usage of a turn and of all sub-agents below it.')

const limit = z.number().positive().optional()

export const delegation = z
  .object({
    ancestors: z
      .array(
        z.object({
          session: z.string(),
          turnId: z.string(),
          agent: z.string(),
          mode,
          deny: z.array(z.string()),
          ask: z.array(z.string()),
          allow: z.array(z.string()),
          effects: z.array(z.string()).describe('The effects that it may cause or delegate.'),
        }),
      )
      .min(1)
      .describe('The agents that delegated the task, root first, with the policy of each at that time.'),
    callId: z.string().describe("The parent's tool call."),
    depth: z.number().int().positive().describe('Maximum number of levels below the root.'),
    children: z.number().int().positive().describe('Maximum number of sub-agents in the whole tree.'),
    budget: z
      .object({
        tokens: limit,
        toolCalls: limit,
        children: limit,
        money: limit,
        price: z.object({ input: z.number(), output: z.number() }).optional(),
      })
      .describe('The budget of the root, for the whole tree.'),
  })
  .describe('Set when another agent gave the task. Its authority limits that of this turn.')

const turnOptions = z
  .object({
    output: z
      .object({ name: z.string(), schema: z.record(z.string(), z.unknown()) })
      .optional()
      .describe('JSON Schema that the answer must satisfy.'),
    model: z.string().optional().describe('The id of another model of the agent.'),
    toolChoice: z
      .union([z.enum(['auto', 'none', 'required']), z.object({ tool: z.string() })])
      .optional()
      .describe('Whether the first model call must, may or must not call a tool, or which one it must call.'),
    maxSteps: z.number().int().positive().optional(),
    totalTimeoutMs: z.number().positive().optional(),
    idleTimeoutMs: z.number().positive().optional(),
    mode: mode.optional(),
    deny: z.array(z.string()).optional().describe('Further deny rules; they can only remove permissions.'),
    attributes: z
      .record(z.string(), z.unknown())
      .optional()
      .describe('For tools and middleware; never part of a prompt.'),
  })
  .describe("Overrides of the agent's defaults for one turn.")

const ruleScope = z.enum(['session', 'user', 'project'])
const turnId = z.string()
const callId = z.string()
const step = z.number().int().positive().describe('1 for the first model call of the turn.')

const bodies = [
  z
    .object({
      type: z.literal('session.opened'),
      schemaVersion: z.number().int(),
      key: z.object({ tenant: z.string(), user: z.string(), session: z.string() }),
      agent: z.object({ name: z.string(), version: z.string() }),
      parent: z
        .object({ session: z.string(), turnId: z.string(), callId: z.string() })
        .optional()
        .describe('For a sub-agent: the call of another session of the same user that opened this one.'),
    })
    .describe('The first event of every journal.'),
  z
    .object({
      type: z.literal('turn.started'),
      turnId,
      input: inputBlocks,
      surface: z.string().describe('Where the input arrived: `http`, `ag-ui`, `cli`, `library` …'),
      principal,
      agent: z.object({ name: z.string(), version: z.string() }),
      options: turnOptions,
      delegation: delegation.optional(),
    })
    .describe('An input was accepted. It runs at once, or after the turns that were accepted before it.'),
  z
    .object({
      type: z.literal('turn.claimed'),
      turnId,
      worker: z.string(),
      epoch: z.number().int().positive(),
    })
    .describe('A worker claimed the turn. A higher epoch invalidates every lower one.'),
  z
    .object({
      type: z.literal('turn.steered'),
      turnId,
      inputId: z.string(),
      input: inputBlocks,
      principal,
      origin: z.literal('agent').optional().describe('The message comes from the parent agent.'),
    })
    .describe('A message for the running turn; the model sees it from the next step on.'),
  z
    .object({ type: z.literal('interrupt.requested'), turnId, principal, reason: z.string().optional() })
    .describe('The turn was asked to stop.'),
  z
    .object({
      type: z.literal('step.started'),
      turnId,
      step,
      toolsOffered: z.boolean(),
      joined: z
        .number()
        .optional()
        .describe('How many of those messages join, when others came too late for this call. Without it: all.'),
    })
    .describe('The model is about to be called. Messages that arrived since the last step join the conversation here.'),
  z
    .object({
      type: z.literal('model.finished'),
      turnId,
      step,
      message,
      finishReason: z.enum(['stop', 'calls', 'length', 'refusal', 'filtered', 'cancelled', 'error']),
      usage,
      model: z.string().describe('The model that answered.'),
      attempts: z
        .array(z.object({ model: z.string(), code: z.string(), message: z.string(), waitMs: z.number() }))
        .optional()
        .describe('Earlier requests that failed without output, of this model or of one that it replaced as fallback.'),
      timing: z.object({ firstOutputMs: z.number().optional(), totalMs: z.number() }),
      error: failure.optional(),
    })
    .describe('The model answered, completely or in part.'),
  z
    .object({
      type: z.literal('call.decided'),
      turnId,
      callId,
      decision: z.enum(['allow', 'ask', 'deny']),
      rule: z.string().describe('The rule that decided; `approval:ID` when a person did.'),
      reason: z.string(),
      arguments: z
        .record(z.string(), z.unknown())
        .describe('The arguments that will run: parsed, coerced and validated.'),
    })
    .describe('The permission gate decided on a call.'),
  z
    .object({
      type: z.literal('call.started'),
      turnId,
      callId,
      operationId: z.string().describe('The same for every attempt. Send it to business systems as idempotency key.'),
      attempt: z.number().int().positive(),
    })
    .describe('Stored before the call runs.'),
  z
    .object({
      type: z.literal('call.finished'),
      turnId,
      callId,
      status: callStatus,
      content: z.array(z.union([text, data])).describe('As the model reads it.'),
      artifact: z
        .object({ id: z.string(), bytes: z.number().int() })
        .optional()
        .describe('The full result, if the content holds only its beginning and end.'),
      error: failure.optional(),
      durationMs: z.number(),
    })
    .describe('The call ended. Every call has exactly one such event.'),
  z
    .object({
      type: z.literal('external.requested'),
      turnId,
      callId,
      tool: z.string(),
      arguments: z.record(z.string(), z.unknown()),
    })
    .describe('The caller has to run this call and send its result.'),
  z
    .object({
      type: z.literal('external.resolved'),
      turnId,
      callId,
      principal,
      status: z.enum(['success', 'error']),
      content: z.array(z.union([text, data])),
    })
    .describe('The caller sent the result of an external call.'),
  z
    .object({
      type: z.literal('approval.requested'),
      turnId,
      approvalId: z.string(),
      callId,
      tool: z.string(),
      arguments: z.record(z.string(), z.unknown()).describe('Exactly what will run if it is approved.'),
      digest: z.string().describe('SHA-256 of tool and arguments. The approval covers only these.'),
      rule: z.string().describe('The rule that asked.'),
      reason: z.string(),
      suggestions: z.array(z.string()).describe('Rules that would allow calls like this one, the narrowest first.'),
      scopes: z
        .array(ruleScope)
        .optional()
        .describe(
          'The scopes in which a rule can be remembered. Absent: all. A session rule would not apply to parent agents.',
        ),
      approver: z
        .string()
        .optional()
        .describe('The permission id that is needed to decide. If absent, the user decides.'),
      origin: z
        .object({
          session: z.string(),
          approvalId: z.string(),
          agents: z.array(z.string()).describe('From the root to the agent that asks.'),
        })
        .optional()
        .describe('Set when a sub-agent asks. A decision on this approval decides that one.'),
      expiresAt: z.number().int(),
    })
    .describe('A call waits for an approval.'),
  z
    .object({
      type: z.literal('approval.resolved'),
      turnId,
      approvalId: z.string(),
      verdict: z.enum(['approved', 'denied', 'expired']),
      principal: principal.optional().describe('Who decided. Absent if the approval expired.'),
      reason: z.string().optional(),
      arguments: z
        .record(z.string(), z.unknown())
        .optional()
        .describe('Edited arguments, coerced and validated. They are checked again before the call runs.'),
      remember: z
        .object({
          rule: z.string(),
          scope: ruleScope,
          origin: z.string().optional().describe("Where the tool comes from. Absent for the agent's own tools."),
          expiresAt: z.number().int().optional(),
        })
        .optional()
        .describe('A rule that was remembered with the approval.'),
    })
    .describe('An approval was decided, or expired.'),
  z
    .object({
      type: z.literal('state.changed'),
      turnId,
      slot: z.string(),
      value: z.unknown(),
      handsUp: z.boolean().optional().describe('The parent agent also receives the value when this agent ends.'),
    })
    .describe('A state slot of a capability has a new value. Stored with the call that changed it.'),
  z
    .object({
      type: z.literal('context.compacted'),
      turnId: turnId.describe('The running turn; for a manual compaction, the last turn that ended.'),
      step: z.number().int().nonnegative().describe('The step whose model call it preceded.'),
      reason: z
        .enum(['threshold', 'messages', 'overflow', 'manual'])
        .describe(
          'Too many tokens; too many messages; the provider rejected the request as too long; a manual request.',
        ),
      tier: z
        .enum(['none', 'references', 'summary', 'excerpt'])
        .describe(
          'What was done: nothing could be removed; old results became references; a model summarised; old messages ' +
            'were dropped without a summary.',
        ),
      tokensBefore: z.number(),
      tokensAfter: z.number(),
      messagesBefore: z.number().int(),
      messagesAfter: z.number().int(),
      parts: z.record(z.string(), z.number()).describe('Tokens in the context now, by part.'),
      messages: z.array(message).optional().describe('The conversation from now on. Absent: unchanged.'),
      memory: z.unknown().optional().describe('Notes for the next compaction.'),
      usage: usage.optional().describe('Usage of the model that summarised.'),
      failure: failure.optional().describe('Why there is no summary.'),
    })
    .describe('The conversation that the model sees was shortened. The journal keeps everything.'),
  z
    .object({
      type: z.literal('child.opened'),
      turnId: turnId.describe('The turn that delegates the task.'),
      callId,
      session: z.string().describe("The child's session, of the same user."),
      agent: z.string(),
      childTurnId: z.string(),
      task: z.string().describe('The beginning of the task.'),
      background: z.boolean(),
    })
    .describe('A task was delegated to another agent. Stored before that agent receives it.'),
  z
    .object({ type: z.literal('child.detached'), turnId, callId, childTurnId: z.string() })
    .describe('The call no longer waits for the child; the result will arrive as a message.'),
  z
    .object({
      type: z.literal('child.closed'),
      turnId,
      callId,
      session: z.string(),
      agent: z.string(),
      childTurnId: z.string(),
      status: z.enum(['done', 'partial', 'blocked', 'empty', 'cut', 'max_steps', 'refused', 'failed', 'cancelled']),
      text: z.string().describe('The result, as the model reads it.'),
      spent,
      slots: z
        .array(z.record(z.string(), z.unknown()))
        .optional()
        .describe('Slot values that the child and its own children return.'),
      input: inputBlocks
        .optional()
        .describe('Input for the next step of this session, if no call waits for the result.'),
    })
    .describe('A child ended. Stored exactly once; it also delivers the result.'),
  z
    .object({ type: z.literal('result.delivered'), turnId })
    .describe('The parent session has received the result of this task.'),
  z
    .object({ type: z.literal('pause.requested'), turnId, principal, reason: z.string().optional() })
    .describe('The turn was asked to pause until it is released.'),
  z
    .object({ type: z.literal('output.rejected'), turnId, step, message: z.string() })
    .describe('The answer did not satisfy the schema. The model gets the reason and is asked again.'),
  z
    .object({
      type: z.literal('reply.reviewed'),
      turnId,
      step,
      code: z.string(),
      message: z.string().describe('Safe to show to end users.'),
      items: z.array(z.string()).describe('The passages of the answer that it is about.'),
      correction: z.string().optional().describe('The message to the model, which then answers once more.'),
    })
    .describe('A review found a problem in the answer, such as a citation that was never retrieved.'),
  z
    .object({
      type: z.literal('turn.paused'),
      turnId,
      reason: z.enum(['approval', 'external', 'signal', 'sleep', 'manual', 'recovery_limit']),
    })
    .describe('The turn waits for an approval, a result, a signal, a time or a release.'),
  z
    .object({
      type: z.literal('work.started'),
      turnId,
      callId,
      position: z.number().int().positive().describe('1 for the first step, sleep or signal of the call.'),
      kind: z.enum(['step', 'sleep', 'signal']),
      name: z.string(),
      attempt: z.number().int().positive(),
      operationId: z.string().optional().describe('Of a step. The same for every attempt: an idempotency key.'),
      wakeAt: z.number().int().optional().describe('When a sleep ends, or the wait for a signal is given up.'),
    })
    .describe('A durable tool begins a step, a sleep, or the wait for a signal. Stored before the step runs.'),
  z
    .object({
      type: z.literal('work.finished'),
      turnId,
      callId,
      position: z.number().int().positive(),
      end: z.union([
        z.object({ status: z.literal('success'), value: z.unknown().optional() }),
        z.object({ status: z.literal('error'), error: failure }),
        z.object({ status: z.literal('timed_out') }),
      ]),
    })
    .describe(
      'A step ended, a sleep is over, or no signal came in time. The tool gets the same answer when it runs again.',
    ),
  z
    .object({
      type: z.literal('signal.received'),
      turnId,
      signalId: z.string(),
      name: z.string(),
      value: z.unknown(),
      principal,
    })
    .describe('A signal for the turn. The first call that waits for its name receives it.'),
  z
    .object({ type: z.literal('turn.yielded'), turnId, worker: z.string(), epoch: z.number().int().positive() })
    .describe(
      'The worker is shutting down and gives the turn up for another one. Not counted as an interrupted attempt.',
    ),
  z
    .object({ type: z.literal('turn.released'), turnId, principal })
    .describe('A turn that was paused manually, or parked after too many recoveries, resumes.'),
  z
    .object({
      type: z.literal('turn.finished'),
      turnId,
      reason: z.enum(['completed', 'stopped', 'repetition', 'max_steps', 'length', 'refusal', 'filtered']),
      output: z.unknown().optional().describe('The validated structured answer, if one was requested.'),
    })
    .describe('The turn ended with an answer.'),
  z.object({ type: z.literal('turn.failed'), turnId, error: failure }).describe('The turn ended without an answer.'),
  z
    .object({ type: z.literal('turn.cancelled'), turnId, reason: z.string() })
    .describe('The turn was cancelled; text that was already streamed is kept.'),
] as const

const stored = {
  seq: z.number().int().positive().describe('The sequence number: 1, 2, 3 … without gaps in each session.'),
  at: z.number().int().describe('Milliseconds since 1970, by the clock of the writer.'),
}

export const eventBody = z.discriminatedUnion('type', bodies)
export const event = z.discriminatedUnion(
  'type',
  bodies.map((body) => body.extend(stored).describe(body.description ?? '')) as unknown as [
    StoredSchema<(typeof bodies)[number]>,
    ...never[],
  ],
)

type StoredSchema<T> = T extends z.ZodObject<infer Shape> ? z.ZodObject<Shape & typeof stored> : never

/** JSON Schema 2020-12 of one stored event. */
export const eventJsonSchema = (): object => z.toJSONSchema(event, { target: 'draft-2020-12' })
