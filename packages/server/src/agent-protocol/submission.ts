// The body of POST /tasks, and the part of it that is stored with the turn.
import { z } from 'zod'

const denyRule = z
  .looseObject({
    tool_name: z.string().min(1).max(200),
    rule_content: z
      .string()
      .max(500)
      .nullish()
      .transform((it) => (it === null || it?.trim() === '' ? undefined : it))
      .describe('A pattern of the tool, as in tool(pattern). A tool without patterns is denied entirely.'),
    behavior: z.string().nullish(),
    source: z.string().nullish().describe('The source of the rule; ignored.'),
  })
  .refine((it) => (it.behavior ?? 'DENY').toUpperCase() === 'DENY', {
    path: ['behavior'],
    message: 'must be DENY: callers can only restrict',
  })

const attributes = z.record(z.string(), z.unknown())

const context = z
  .looseObject({
    user_id: z.string().max(200).nullish(),
    parent_session_id: z.string().max(200).nullish().describe('For tracing.'),
    stream: z.boolean().nullish().describe('Whether the caller means to read the events.'),
    detail: z.unknown().optional().describe('`status`, `full` or `verbose`; any other value counts as `status`.'),
    deny_rules: z
      .array(denyRule)
      .max(1_000)
      .nullish()
      .describe('Deny rules of the parent, which are enforced here too.'),
    attributes: attributes.nullish().describe('For routing, tools and middleware; never in the prompt.'),
  })
  .nullish()

export const submission = (maxLength: number) =>
  z.object({
    task_id: z
      .string('is required')
      .max(1_000)
      .refine((it) => it.trim() !== '', 'is required')
      .refine((it) => it !== '.' && it !== '..', 'must not be "." or "..": a URL cannot contain them')
      .refine((it) => it.isWellFormed(), 'must not contain a lone surrogate: a URL cannot contain it'),
    agent_id: z.string().max(200).nullish(),
    input: z
      .string()
      .max(maxLength, `must not be longer than ${maxLength} characters`)
      .describe('May be blank for agents that need only the attributes.'),
    context,
  })
export type Submission = z.output<ReturnType<typeof submission>>

export const submittedText = (object: Readonly<Record<string, unknown>>, key: string): string | undefined => {
  const value = object[key]
  return typeof value === 'string' && value.trim() !== '' ? value : undefined
}

export function attributesIn(context: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const parsed = attributes.safeParse(context.attributes)
  return parsed.success ? parsed.data : {}
}

export type Detail = 'status' | 'full' | 'verbose'
export const detailIn = (context: Readonly<Record<string, unknown>>): Detail => {
  const given = submittedText(context, 'detail')?.trim().toLowerCase()
  return given === 'full' || given === 'verbose' ? given : 'status'
}
