// The one definition of everything that a journal may hold. Types, JSON Schema and docs/reference/events.md come from here.
// Only borders import this file for its values; the engine imports its types, so that the hot path never loads zod.
import { z } from 'zod'

const text = z.object({ type: z.literal('text'), text: z.string() })

const thinking = z
  .object({
    type: z.literal('thinking'),
    text: z.string(),
    signature: z.string().optional().describe("The provider's proof; signed blocks are sent back byte for byte."),
    redacted: z.string().optional().describe('Opaque reasoning that only the provider can read.'),
  })
  .describe('Reasoning of the model. Never part of the answer.')

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
    callId: z.string().describe("Ours, derived from session, turn, step and position; never the model's."),
    tool: z.string(),
    arguments: z.string().describe('Raw JSON text, exactly as the model wrote it.'),
    signature: z.string().optional().describe("The provider's proof of the reasoning behind it, sent back as it came."),
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
      .describe('Somebody approved the call, with a reason or with other arguments than the model had given.'),
  })
  .describe('What a call came to, as the model reads it.')

export const block = z.discriminatedUnion('type', [text, thinking, data, call, result])

export const message = z.object({
  id: z.string(),
  role: z.enum(['user', 'assistant', 'tool']),
  blocks: z.array(block),
  origin: z
    .enum(['agent', 'engine'])
    .optional()
    .describe('Of the role `user`: who has written it, where that was not whoever gave the task.'),
  partial: z.boolean().optional().describe('The answer was cut or cancelled; this is what had been shown.'),
  model: z
    .string()
    .optional()
    .describe('`provider:model` that wrote it. No other model gets its signatures and sealed reasoning.'),
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
  .describe('It holds only for tools whose permission id these cover. Default: for all tools.')

export const dataScope = z
  .discriminatedUnion('type', [
    z.strictObject({ type: z.literal('all'), permissions }),
    z.strictObject({ type: z.literal('own'), permissions }),
    z.strictObject({ type: z.literal('department'), permissions }),
    z.strictObject({
      type: z.literal('department_and_below'),
      departments: ids.optional().describe('Those below. Without them, the tool looks them up.'),
      permissions,
    }),
    z.strictObject({
      type: z.literal('custom'),
      departments: ids.optional(),
      role: z.string().optional().describe('Instead of departments: the tool looks up which ones this role was given.'),
      permissions,
    }),
    z.strictObject({
      type: z.literal('conditions'),
      conditions: z
        .record(z.string(), z.union([value, comparison]))
        .describe('By column, all of which must hold, in the form of `@casl/ability`.'),
      permissions,
    }),
  ])
  .describe('Rows that somebody may see.')

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
      .describe('Rows that tools may show to them, joined by OR. Default: their own. An empty list: none.'),
    credential: z
      .string()
      .optional()
      .describe(
        'Names what they have proven themselves with, so that it can be asked later what that is still good for. No secret.',
      ),
  })
  .describe('Who acts. Comes from the server, never from a body, a model or a prompt.')

const inputBlocks = z.array(z.union([text, data]))

export const usage = z
  .object({
    inputTokens: z.number().describe('Input that was not served from a cache.'),
    cacheReadTokens: z.number(),
    cacheWriteTokens: z.number(),
    outputTokens: z.number().describe('All output, reasoning included.'),
    reasoningTokens: z.number().describe('The part of the output that was reasoning.'),
    estimated: z.boolean().describe('True when the provider gave no figures and these were counted here.'),
    cost: z.number().optional().describe('US dollars. Absent when the price of any part is not known.'),
  })
  .describe('Tokens of one model call, or a sum of them.')

const failure = z.object({
  code: z.string(),
  message: z.string().describe('Safe to show to end users.'),
  reference: z.string().optional().describe('Finds the full error in the log.'),
  retryable: z.boolean().optional().describe('The same may go well another time.'),
})

const mode = z.enum(['default', 'accept-edits', 'explore', 'bypass', 'dont-ask'])

const spent = z
  .object({
    usage,
    toolCalls: z.number().int(),
    children: z.number().int().describe('Agents that were started.'),
  })
  .describe('What a turn and everything below it has used up.')

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
          effects: z.array(z.string()).describe('What it can do to the world, or has been given to hand on.'),
        }),
      )
      .min(1)
      .describe('Who handed the task on, the root first, and what each of them might do at that time.'),
    callId: z.string().describe("The parent's call."),
    depth: z.number().int().positive().describe('How many levels there may be below the root.'),
    children: z.number().int().positive().describe('How many agents the whole tree may start.'),
    budget: z
      .object({
        tokens: limit,
        toolCalls: limit,
        children: limit,
        money: limit,
        price: z.object({ input: z.number(), output: z.number() }).optional(),
      })
      .describe("The root's, for the whole tree."),
  })
  .describe('The task comes from another agent, whose authority is the most that this turn has.')

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
    deny: z.array(z.string()).optional().describe('Further rules; they can only take away.'),
    attributes: z.record(z.string(), z.unknown()).optional().describe('For tools and middleware; never in the prompt.'),
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
        .describe('The call of another session of the same user that opened this one.'),
    })
    .describe('The first event of every journal.'),
  z
    .object({
      type: z.literal('turn.started'),
      turnId,
      input: inputBlocks,
      surface: z.string().describe('Where it came in: `http`, `ag-ui`, `cli`, `library` …'),
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
    .describe('A worker took the turn. A higher epoch ends the rights of every lower one.'),
  z
    .object({
      type: z.literal('turn.steered'),
      turnId,
      inputId: z.string(),
      input: inputBlocks,
      principal,
      origin: z.literal('agent').optional().describe('It comes from the agent that has given the task.'),
    })
    .describe('A message for the turn that runs; the model sees it from the next step on.'),
  z
    .object({ type: z.literal('interrupt.requested'), turnId, principal, reason: z.string().optional() })
    .describe('Somebody asked for the turn to stop.'),
  z
    .object({ type: z.literal('step.started'), turnId, step, toolsOffered: z.boolean() })
    .describe('The model is about to be called. Steering inputs that had come join the conversation here.'),
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
        .describe('Requests that failed before it without any output, of this model or of one that it stood in for.'),
      timing: z.object({ firstOutputMs: z.number().optional(), totalMs: z.number() }),
      error: failure.optional(),
    })
    .describe('The model answered, wholly or in part.'),
  z
    .object({
      type: z.literal('call.decided'),
      turnId,
      callId,
      decision: z.enum(['allow', 'ask', 'deny']),
      rule: z.string().describe('The rule that decided; `approval:ID` when a person did.'),
      reason: z.string(),
      arguments: z.record(z.string(), z.unknown()).describe('What will run: parsed, coerced and validated.'),
    })
    .describe('The harness judged a call.'),
  z
    .object({
      type: z.literal('call.started'),
      turnId,
      callId,
      operationId: z.string().describe('Stable over attempts; a business system keys on it.'),
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
        .describe('The full result, when the content holds only its head and tail.'),
      error: failure.optional(),
      durationMs: z.number(),
    })
    .describe('The one end of a call.'),
  z
    .object({
      type: z.literal('external.requested'),
      turnId,
      callId,
      tool: z.string(),
      arguments: z.record(z.string(), z.unknown()),
    })
    .describe('The call was handed to the caller; its result comes back later.'),
  z
    .object({
      type: z.literal('external.resolved'),
      turnId,
      callId,
      principal,
      status: z.enum(['success', 'error']),
      content: z.array(z.union([text, data])),
    })
    .describe('The caller brought the result of an external call.'),
  z
    .object({
      type: z.literal('approval.requested'),
      turnId,
      approvalId: z.string(),
      callId,
      tool: z.string(),
      arguments: z.record(z.string(), z.unknown()).describe('Exactly what will run if it is approved.'),
      digest: z.string().describe('SHA-256 of tool and arguments; an approval is good for these only.'),
      rule: z.string().describe('What asked.'),
      reason: z.string(),
      suggestions: z.array(z.string()).describe('Rules that would let calls like this one run, the narrowest first.'),
      scopes: z
        .array(ruleScope)
        .optional()
        .describe(
          'For what they can be accepted. Absent: for all. One of the session would not hold for agents above.',
        ),
      approver: z
        .string()
        .optional()
        .describe('The permission id that is needed to decide. Without it the user decides.'),
      origin: z
        .object({
          session: z.string(),
          approvalId: z.string(),
          agents: z.array(z.string()).describe('From the root to the one that asks.'),
        })
        .optional()
        .describe('Another agent below this one asks; to decide on this is to decide on that.'),
      expiresAt: z.number().int(),
    })
    .describe('A call waits for a person.'),
  z
    .object({
      type: z.literal('approval.resolved'),
      turnId,
      approvalId: z.string(),
      verdict: z.enum(['approved', 'denied', 'expired']),
      principal: principal.optional().describe('Who decided; nobody when it expired.'),
      reason: z.string().optional(),
      arguments: z
        .record(z.string(), z.unknown())
        .optional()
        .describe('Edited arguments, coerced and validated; judged again before they run.'),
      remember: z
        .object({
          rule: z.string(),
          scope: ruleScope,
          origin: z.string().optional().describe("Where the tool came from: none is the agent's own."),
          expiresAt: z.number().int().optional(),
        })
        .optional()
        .describe('A rule that was accepted together with the approval.'),
    })
    .describe('A person decided, or the time to decide ran out.'),
  z
    .object({
      type: z.literal('state.changed'),
      turnId,
      slot: z.string(),
      value: z.unknown(),
      handsUp: z.boolean().optional().describe('The agent that has given the task gets the value, too, at its end.'),
    })
    .describe('What a capability remembers of the session has a new value. Stored with the call that changed it.'),
  z
    .object({
      type: z.literal('context.compacted'),
      turnId: turnId.describe('The turn that runs; of a compaction by hand, the last one that has ended.'),
      step: z.number().int().nonnegative().describe('The step before whose model call it happened.'),
      reason: z
        .enum(['threshold', 'messages', 'overflow', 'manual'])
        .describe('The context was large, or had many messages; the provider refused it; somebody asked for it.'),
      tier: z
        .enum(['none', 'references', 'summary', 'excerpt'])
        .describe(
          'How: old results became references; a model summarised; old messages were left out without a summary; ' +
            'nothing could go.',
        ),
      tokensBefore: z.number(),
      tokensAfter: z.number(),
      messagesBefore: z.number().int(),
      messagesAfter: z.number().int(),
      parts: z.record(z.string(), z.number()).describe('What fills the context now, in tokens.'),
      messages: z.array(message).optional().describe('The conversation from now on. Absent: as it was.'),
      memory: z.unknown().optional().describe('What the next compaction needs of this one.'),
      usage: usage.optional().describe('Of the model that summarised.'),
      failure: failure.optional().describe('Why there is no summary.'),
    })
    .describe('The conversation that the model sees was made shorter. The journal keeps all of it.'),
  z
    .object({
      type: z.literal('child.opened'),
      turnId: turnId.describe('The turn that hands the task on.'),
      callId,
      session: z.string().describe("The child's, of the same user."),
      agent: z.string(),
      childTurnId: z.string(),
      task: z.string().describe('Its beginning.'),
      background: z.boolean(),
    })
    .describe('A task was given to another agent. Stored before that agent has it.'),
  z
    .object({ type: z.literal('child.detached'), turnId, callId, childTurnId: z.string() })
    .describe('The call does not wait for the child any longer; its result will come as a message.'),
  z
    .object({
      type: z.literal('child.closed'),
      turnId,
      callId,
      session: z.string(),
      agent: z.string(),
      childTurnId: z.string(),
      status: z.enum(['done', 'partial', 'blocked', 'empty', 'cut', 'max_steps', 'refused', 'failed', 'cancelled']),
      text: z.string().describe('What it handed over, as the model reads it.'),
      spent,
      slots: z
        .array(z.record(z.string(), z.unknown()))
        .optional()
        .describe('What it, and each of those below it, hands up of its slots.'),
      input: inputBlocks.optional().describe('For the next step of this session, when no call waits for the result.'),
    })
    .describe('A child came to its end. Stored once, and with it its result is delivered.'),
  z
    .object({ type: z.literal('result.delivered'), turnId })
    .describe('The session that had given this task knows what came of it.'),
  z
    .object({ type: z.literal('pause.requested'), turnId, principal, reason: z.string().optional() })
    .describe('Somebody asked for the turn to wait until it is released.'),
  z
    .object({ type: z.literal('output.rejected'), turnId, step, message: z.string() })
    .describe('The answer did not satisfy the schema; the model is told why and asked again.'),
  z
    .object({
      type: z.literal('reply.reviewed'),
      turnId,
      step,
      code: z.string(),
      message: z.string().describe('Safe to show to end users.'),
      items: z.array(z.string()).describe('What it is about, as it stands in the answer.'),
      correction: z.string().optional().describe('What the model is told, which then answers once more.'),
    })
    .describe('Something is wrong with the answer, such as a citation of what was never retrieved.'),
  z
    .object({
      type: z.literal('turn.paused'),
      turnId,
      reason: z.enum(['approval', 'external', 'manual', 'recovery_limit']),
    })
    .describe('Nothing can be done until somebody brings an input.'),
  z
    .object({ type: z.literal('turn.yielded'), turnId, worker: z.string(), epoch: z.number().int().positive() })
    .describe(
      'The worker stops in an orderly way and leaves the turn to another. It does not count as an interrupted attempt.',
    ),
  z
    .object({ type: z.literal('turn.released'), turnId, principal })
    .describe('A person lets a turn go on that was paused by hand, or parked after too many recoveries.'),
  z
    .object({
      type: z.literal('turn.finished'),
      turnId,
      reason: z.enum(['completed', 'stopped', 'repetition', 'max_steps', 'length', 'refusal', 'filtered']),
      output: z.unknown().optional().describe('The validated structured output, when one was asked for.'),
    })
    .describe('The turn ended with an answer.'),
  z.object({ type: z.literal('turn.failed'), turnId, error: failure }).describe('The turn ended without an answer.'),
  z
    .object({ type: z.literal('turn.cancelled'), turnId, reason: z.string() })
    .describe('The turn was stopped; what had been shown is kept.'),
] as const

const stored = {
  seq: z.number().int().positive().describe('Dense: 1, 2, 3 … in each session.'),
  at: z.number().int().describe('Milliseconds since 1970, of the writer.'),
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
