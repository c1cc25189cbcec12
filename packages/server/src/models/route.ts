// GET /admin/api/models: the configured models, their definitions, and their health in this process.

import type { Engine } from '@oxbow/core'
import { defined } from '@oxbow/core/internal'
import type { ListedModel, Models } from '@oxbow/models'
import { z } from 'zod'
import { type Route, route } from '../http/route.ts'

const price = z.object({
  input: z.number(),
  output: z.number(),
  cacheRead: z.number().optional(),
  cacheWrite: z.number().optional(),
})

const health = z.object({
  breaker: z.enum(['closed', 'open', 'half_open']).describe('The circuit breaker; `open` after repeated failures.'),
  running: z.number().describe('Running requests at its address.'),
  waiting: z.number().describe('Queued requests at its address.'),
  answered: z.number(),
  failed: z.number(),
  lastAnswerAt: z.number().optional().describe('Milliseconds since 1970.'),
  lastFailure: z.object({ at: z.number(), code: z.string(), message: z.string() }).optional(),
})

export const listedModel = z.object({
  name: z.string(),
  model: z.string().describe('provider:model.'),
  aliases: z.array(z.string()).describe('`default` is the model of agents that name none.'),
  address: z.string().optional().describe('Without the query. Missing: the model runs in this process.'),
  key: z
    .object({ variable: z.string(), present: z.boolean() })
    .optional()
    .describe('The environment variable of its key. Missing: the model needs no key.'),
  price: price
    .optional()
    .describe('From the configuration, otherwise from the public list; US dollars per million tokens.'),
  contextWindow: z.number().optional().describe('In tokens, if known.'),
  fallbacks: z.array(z.object({ model: z.string(), weight: z.number() })),
  health: health.optional().describe('In this process, since its first use.'),
})

export function modelsRoute(engine: Engine, models: Pick<Models, 'list'> | undefined): Route {
  return route({
    method: 'get',
    path: '/admin/api/models',
    id: 'listModels',
    access: 'admin',
    summary: 'The configured models, and their health in this process.',
    answers: { 200: { description: 'All models.', schema: z.object({ models: z.array(listedModel) }) } },
    handle: (_request, c) => c.json({ models: (models?.list() ?? modelsOf(engine)).map(shown) }),
  })
}

/** The models of the agents, when a program created them itself. */
const modelsOf = ({ agents }: Engine): ListedModel[] =>
  [...new Map([...agents.values()].map(({ model }) => [model.id, model])).values()].map((it) => ({
    name: it.id,
    model: it.id,
    aliases: [],
    ...defined({ contextWindow: it.contextWindow }),
    fallbacks: [],
  }))

function shown({ health, ...rest }: ListedModel): z.output<typeof listedModel> {
  if (health === undefined) return { ...rest, fallbacks: [...rest.fallbacks], aliases: [...rest.aliases] }
  const { model: _, ...figures } = health
  return { ...rest, fallbacks: [...rest.fallbacks], aliases: [...rest.aliases], health: figures }
}
