// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the file has placeholders of its own.
// The settings of models: one table for each model, and the aliases.
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
  provider: textSetting('The provider of the model.', 'a provider such as "openai", "anthropic", "deepseek" or "vllm"'),
  model: textSetting('The model’s name at the provider. Default: the provider’s default model.').optional(),
  keyVariable: z
    .string()
    .regex(/^[A-Za-z_]\w{0,63}$/)
    .meta({
      kind: 'secret',
      description: 'The environment variable that holds the key. Default: the provider’s own.',
      allowed: 'the name of an environment variable, such as "OPENAI_API_KEY"; never the key itself',
    } satisfies About)
    .optional(),
  baseUrl: url('The base URL of the API. Default: the provider’s own.').optional(),
  headers: z
    .record(z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/), z.string())
    .meta(table('Headers of each request.', 'a table of strings; secrets as "${VARIABLE}"'))
    .optional(),
  options: z
    .record(z.string(), z.unknown())
    .meta(table('Fields that are added to the body of each request.', 'a table such as { reasoning_effort = "low" }'))
    .optional(),
  timeouts: z
    .strictObject({
      firstByte: duration('100ms', '1h', 'The time limit for the first byte of an answer. Default 60s.').optional(),
      idle: duration('100ms', '1h', 'The maximum silence within an answer. Default 30s.').optional(),
      total: duration('1s', '24h', 'The time limit of a whole answer. Default 10m.').optional(),
    })
    .optional(),
  limits: z
    .strictObject({
      concurrency: integer(1, 100_000, 'Concurrent requests of all models at the same address. Default 64.').optional(),
      requestsPerMinute: integer(
        1,
        10_000_000,
        'Requests per minute of all models at the same address. Default: no limit.',
      ).optional(),
    })
    .optional(),
  price: z
    .strictObject({
      input: money('The price of input.'),
      output: money('The price of output.'),
      cacheRead: money('The price of input that is read from the cache. Default: the price of input.').optional(),
      cacheWrite: money('The price of input that is written to the cache. Default: the price of input.').optional(),
    })
    .optional(),
  contextWindow: integer(
    1,
    100_000_000,
    'The context window in tokens: input and output together. Default: from the public list.',
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
        'Models that answer when this one cannot, chosen at random by weight.',
        'a list of names, or of tables such as { model = "spare", weight = 2 }',
      ),
    )
    .optional(),
})

export const modelsSetting = z
  .record(z.string(), z.unknown())
  .meta(
    table(
      'Models by name, and [models.aliases]; see below. In the environment variable: a JSON object.',
      'one table for each name',
    ),
  )
