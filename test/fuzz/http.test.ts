// Every operation of the service, as its OpenAPI document describes it, asked in every way that a client should not.
// FUZZ_RUNS=N: so many requests for each operation; FUZZ_SEED as for every property.
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { send } from './client.ts'
import { requests } from './generate.ts'
import { type Document, judge, operationsOf } from './judge.ts'
import { startTarget, type Target } from './service.ts'

const RUNS = Number(process.env.FUZZ_RUNS ?? 150)
/** Far more than an answer takes on a machine that is busy with other things. */
const BOUND_MS = 5_000
const STREAM_MS = 150

describe.each(['api-keys', 'none'] as const)('with identity %s', (mode) => {
  let target: Target
  let document: Document
  beforeAll(async () => {
    target = await startTarget(mode)
    document = (await (await fetch(`${target.url}/openapi.json`)).json()) as Document
  })
  afterAll(() => target.close())

  test('every route of the service is an operation of its document', () => {
    const documented = operationsOf(document).map((it) => `${it.method.toUpperCase()} ${it.path}`)
    expect(documented.length).toBeGreaterThan(20)
    expect(documented.toSorted()).toEqual([...new Set(target.routes)].toSorted())
  })

  test('no request makes it fail, hang, break its contract, or leak another caller’s data', async () => {
    const faultsOf = judge(target, document, mode)
    const seen = new Map<string, Set<number>>()
    // The others need what an erasure removes.
    const operations = operationsOf(document).toSorted(
      (a, b) => Number(a.operationId.startsWith('erase')) - Number(b.operationId.startsWith('erase')),
    )
    for (const operation of operations)
      await fc.assert(
        fc.asyncProperty(requests(operation, target), async (request) => {
          const answer = await send(target.url, request, { boundMs: BOUND_MS, streamMs: STREAM_MS })
          const statuses = seen.get(operation.operationId) ?? new Set()
          seen.set(operation.operationId, statuses.add(answer.status ?? 0))
          const faults = faultsOf(request, answer, BOUND_MS)
          if (faults.length === 0) return
          const asked = `${request.method} ${request.target} as ${request.caller}\n${request.headers.map((it) => it.join(': ')).join('\n')}\n${request.body.subarray(0, 500)}`
          throw new Error(`${operation.operationId}: ${faults.join('; ')}\n\n${asked}\n\n${answer.raw.slice(0, 1_000)}`)
        }),
        { numRuns: RUNS },
      )
    // A run that only ever saw refusals has tested the door.
    const reached = [...seen]
      .filter(([, statuses]) => [...statuses].some((it) => it >= 200 && it < 300))
      .map(([id]) => id)
    const all = operationsOf(document).map((it) => it.operationId)
    expect(all.filter((it) => !reached.includes(it) && !RARE.has(it))).toEqual([])

    expect((await fetch(`${target.url}/readyz`)).status).toBe(200)
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${target.keys.ann}` }
    const body = JSON.stringify({ message: 'Hi.' })
    expect((await fetch(`${target.url}/api/chat`, { method: 'POST', headers, body })).status).toBe(200)
    expect(target.logged.filter((it) => it.level === 'error')).toEqual([])
    const logs = JSON.stringify(target.logged)
    for (const key of Object.values(target.keys)) expect(logs).not.toContain(key)
  }, 600_000)
})

/** They only succeed in a state that random requests rarely reach; a WebSocket has its own test. */
const RARE = new Set([
  'bringCallResult',
  'decideApproval',
  'releaseTurn',
  'removeRule',
  // MCP clients have initialised before.
  'mcp',
  'resumeProtocolTask',
  'resumeTask',
  'sendSignal',
  'watchTask',
])
