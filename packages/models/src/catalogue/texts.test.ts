import { describe, expect, test } from 'vitest'
import { createModels, type ModelDefinition } from '../index.ts'
import { type ServiceAnswer, type ServiceRequest, service } from '../service.fixture.ts'

const embeddings = ({ path, body }: ServiceRequest): ServiceAnswer => {
  const embedding = [1, 2, 3]
  if (path.endsWith('/multimodal')) return { body: { data: { embedding } } }
  if (path.endsWith('/rerank')) return { body: { results: [{ index: 0, relevance_score: 0.5 }] } }
  return { body: { data: body.input.map((_: string, index: number) => ({ index, embedding })) } }
}
const main: ModelDefinition = { provider: 'deepseek' }
const configError = (message: RegExp) =>
  expect.objectContaining({ code: 'model_config', message: expect.stringMatching(message) })

describe('Y11: an embedding or reranking model by its name', () => {
  test('embeds in either protocol, with the key, address and headers of its definition', async () => {
    const server = await service(embeddings)
    const small = { provider: 'ark', model: 'm', baseUrl: server.url, keyVariable: 'K', headers: { 'x-team': 'a' } }
    const models = createModels({ models: { main, small }, aliases: { embed: 'small' } }, { K: 'sk-1' })
    await models.embedder('embed', { dimensions: 3 }).embed(['one', 'two'])
    const ark = models.embedder('small', { protocol: 'ark-multimodal' })
    await ark.embed(['one', 'two'])
    expect(server.requests.map((it) => it.path)).toEqual([
      '/embeddings',
      '/embeddings/multimodal',
      '/embeddings/multimodal',
    ])
    expect(server.requests[0]).toMatchObject({
      headers: { authorization: 'Bearer sk-1', 'x-team': 'a' },
      body: { model: 'm', input: ['one', 'two'], dimensions: 3 },
    })
    expect(models.embedder('embed', { dimensions: 3 }).id).toBe('ark:m@3')
  })

  test('reranks texts', async () => {
    const server = await service(embeddings)
    const judge = { provider: 'vllm', model: 'm', baseUrl: server.url }
    const models = createModels({ models: { main, judge }, aliases: { rerank: 'judge' } })
    expect((await models.reranker('rerank').rerank('q', ['text'])).results).toEqual([{ index: 0, score: 0.5 }])
  })

  test('is never the default, and an unknown one or a missing key is an error', () => {
    const small = { provider: 'openai', model: 'text-embedding-3-small' }
    expect(createModels({ models: { small }, aliases: { embed: 'small' } }).get('default').id).toBe('offline:offline')
    const models = createModels({ models: { main, small }, aliases: { embed: 'small' } }, { DEEPSEEK_API_KEY: 'sk-1' })
    expect(models.get('default').id).toBe('deepseek:deepseek-chat')
    expect(() => models.embedder('smal')).toThrow(configError(/Unknown model "smal"; did you mean small\?/))
    expect(() => models.embedder('embed')).toThrow(configError(/needs an API key. Set OPENAI_API_KEY/))
  })
})
