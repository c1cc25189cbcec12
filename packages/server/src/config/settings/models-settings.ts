// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the file has placeholders of its own.
// The settings of models: one table for each name, and the aliases.
import { z } from 'zod'
import { type About, duration, integer, table, textSetting, url } from './kinds.ts'

const money = (description: string) =>
  z
    .number()
    .min(0)
    .max(1_000_000)
    .meta({ kind: 'number', description, allowed: 'US dollars per million tokens, from 0 to 1000000' } satisfies About)

/** A table of `[models]`. */
export const modelSettings = z.strictObject({
  provider: textSetting('Who offers it.', 'a provider such as "openai", "anthropic", "deepseek" or "vllm"'),
  model: textSetting('Its name there. Default: one that the provider has.').optional(),
  keyVariable: z
    .string()
    .regex(/^[A-Za-z_]\w{0,63}$/)
    .meta({
      kind: 'secret',
      description: 'The environment variable that holds the key. Default: that of the provider.',
      allowed: 'the name of an environment variable, such as "OPENAI_API_KEY"; never the key itself',
    } satisfies About)
    .optional(),
  baseUrl: url('Where it is asked, up to the path of the format. Default: that of the provider.').optional(),
  headers: z
    .record(z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/), z.string())
    .meta(table('Sent with each request.', 'a table of texts; secrets as "${VARIABLE}"'))
    .optional(),
  options: z
    .record(z.string(), z.unknown())
    .meta(table('Passed through to the provider with each request.', 'a table such as { reasoning_effort = "low" }'))
    .optional(),
  timeouts: z
    .strictObject({
      firstByte: duration('100ms', '1h', 'How long it may be silent before its answer begins. Default 60s.').optional(),
      idle: duration('100ms', '1h', 'How long it may be silent within an answer. Default 30s.').optional(),
      total: duration('1s', '24h', 'How long a whole answer may take. Default 10m.').optional(),
    })
    .optional(),
  limits: z
    .strictObject({
      concurrency: integer(1, 100_000, 'Requests at once, of all models at the same address. Default 64.').optional(),
      requestsPerMinute: integer(1, 10_000_000, 'Of all models at the same address. Default: no limit.').optional(),
    })
    .optional(),
  price: z
    .strictObject({
      input: money('Of input.'),
      output: money('Of output.'),
      cacheRead: money('Of input that was read from the cache. Default: as input.').optional(),
      cacheWrite: money('Of input that was written to the cache. Default: as input.').optional(),
    })
    .optional(),
  contextWindow: integer(
    1,
    100_000_000,
    'Tokens of input and output together. Default: by the public list.',
  ).optional(),
  fallbacks: z
    .array(
      z.union([
        z.string().regex(/\S/),
        z.strictObject({ model: z.string().regex(/\S/), weight: z.number().positive().optional() }),
      ]),
    )
    .meta(
      table(
        'Models that are asked when this one cannot answer, drawn by weight.',
        'a list of names, or of tables such as { model = "spare", weight = 2 }',
      ),
    )
    .optional(),
})

export const modelsSetting = z
  .record(z.string(), z.unknown())
  .meta(
    table(
      'Models by name, and [models.aliases]: see below. In the variable: a JSON object.',
      'one table for each name',
    ),
  )
