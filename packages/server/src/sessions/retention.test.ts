import { expect, test } from 'vitest'
import { rigs } from '../test.fixture.ts'
import { applyRetention } from './retention.ts'

const start = rigs()
const DAY = 86_400_000

test('X11: idle sessions are erased when the period of their tenant is over, and open turns never', async () => {
  const { engine } = await start({ replies: { always: { text: 'Hello.' } } })
  const at = (tenant: string, session: string) => engine.session({ tenant, user: 'ann', session })
  for (const tenant of ['acme', 'umbrella', 'default']) await at(tenant, 'old').run('Hi')
  const names = async () => (await engine.sessions({})).map(({ key }) => key.tenant).toSorted()
  const periods = {
    days: 30,
    tenants: new Map([
      ['acme', 7],
      ['umbrella', 0],
    ]),
  }
  expect(await applyRetention(engine, periods, Date.now() + 6 * DAY)).toBe(0)
  expect(await names()).toEqual(['acme', 'default', 'umbrella'])
  expect(await applyRetention(engine, periods, Date.now() + 8 * DAY)).toBe(1)
  expect(await names()).toEqual(['default', 'umbrella'])
  expect(await applyRetention(engine, periods, Date.now() + 31 * DAY)).toBe(1)
  expect(await names()).toEqual(['umbrella'])
  const { records } = await engine.backend.journal.audit({})
  expect(records.filter((it) => it.event === 'data.erased').map((it) => [it.key.tenant, it.principal.user])).toEqual([
    ['acme', 'retention'],
    ['default', 'retention'],
  ])
})

test('X11: without a period nothing is erased', async () => {
  const { engine } = await start({ replies: { always: { text: 'Hello.' } } })
  await engine.session({ user: 'ann' }).run('Hi')
  expect(await applyRetention(engine, { days: 0, tenants: new Map() }, Date.now() + 10_000 * DAY)).toBe(0)
  expect(await engine.sessions({})).toHaveLength(1)
})

test('X11: more sessions than are looked at together', async () => {
  const { engine } = await start({ replies: { always: { text: 'Hello.' } } })
  for (let n = 0; n < 230; n++) await engine.session({ user: 'ann', session: `s${n}` }).run('Hi')
  expect(await applyRetention(engine, { days: 1, tenants: new Map() }, Date.now() + 2 * DAY)).toBe(230)
  expect(await engine.sessions({})).toEqual([])
})
