import { expect, onTestFinished, test } from 'vitest'
import { place } from '../helpers.fixture.ts'
import { evaluate } from '../search/evaluate.ts'
import { labelledSet } from '../search/labelled.fixture.ts'
import { offlineEnglish } from './offline-english.ts'

const cosine = (a: Float32Array, b: Float32Array): number => {
  const dot = (x: Float32Array, y: Float32Array): number => x.reduce((sum, it, i) => sum + it * y[i]!, 0)
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b))
}

function model() {
  const embedder = offlineEnglish()
  onTestFinished(() => embedder.close())
  return embedder
}

test('texts with the same meaning have close vectors, without a network', async () => {
  const { vectors } = await model().embed(
    ['How do I reset my password?', 'Steps to recover account access', 'The cat sat on the mat'],
    { kind: 'document' },
  )
  expect(vectors.map((it) => it.length)).toEqual([512, 512, 512])
  expect(cosine(vectors[0]!, vectors[1]!)).toBeGreaterThan(cosine(vectors[0]!, vectors[2]!) + 0.2)
})

test('a call can be cancelled, and a closed model rejects calls', async () => {
  const embedder = model()
  const stop = new AbortController()
  const asked = embedder.embed(['one'], { kind: 'query', signal: stop.signal })
  stop.abort(new Error('enough'))
  await expect(asked).rejects.toThrow('enough')
  const left = embedder.embed(['two'], { kind: 'query' })
  // It is rejected before anyone awaits it.
  left.catch(() => {})
  await embedder.close()
  await expect(left).rejects.toMatchObject({ code: 'closed' })
})

test('Y11: added to keyword search it loses no passage and little ranking quality', {
  timeout: 120_000,
}, async () => {
  const { documents, labels } = labelledSet('english')
  const there = place(documents)
  const measure = async (embedder?: ReturnType<typeof offlineEnglish>) => {
    const knowledge = there.open({
      path: `${there.directory}/${embedder ? 'both' : 'words'}.db`,
      ...(embedder && { embedder }),
    })
    await knowledge.add([there.documents])
    const search = async (query: string) => (await knowledge.search(query, { k: 20 })).hits.map((it) => it.id)
    return (await evaluate(labels, search, 5))[0]!
  }
  const [words, both] = [await measure(), await measure(model())]
  expect(both.recall).toBeGreaterThanOrEqual(words.recall)
  expect(both.ndcg).toBeGreaterThan(0.9)
})
