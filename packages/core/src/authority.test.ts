import { describe, expect, test } from 'vitest'
import { bench, call } from './core.fixture.ts'
import { externalTool, type Principal } from './index.ts'
import { mayActFor } from './internal.ts'

const owner = { tenant: 'acme', user: 'ann' }
const admin = (tenant: string, ...permissions: string[]): Principal => ({ tenant, user: 'root', permissions })

describe('mayActFor', () => {
  test.each([
    ['the owner', owner, true],
    ['a user of the same name in another tenant', { tenant: 'other', user: 'ann' }, false],
    ['another user', { tenant: 'acme', user: 'bob' }, false],
    ['an administrator of the tenant', admin('acme', 'oxbow:admin'), true],
    ['an administrator of another tenant', admin('other', 'oxbow:admin'), false],
    ['an administrator of all tenants', admin('other', 'oxbow:admin', 'oxbow:admin:tenants'), true],
    ['a user with access to other tenants who is not an administrator', admin('other', 'oxbow:admin:tenants'), false],
    ['an administrator by wildcard', admin('other', 'oxbow:*'), true],
  ])('%s', (_, principal, may) => {
    expect(mayActFor(principal, owner)).toBe(may)
  })

  test('an administrator of tenants stores the result of an external call of another tenant, as they may interrupt its turn', async () => {
    const lookup = externalTool({
      name: 'lookup',
      description: 'Looks up.',
      input: { type: 'object' },
      effects: ['read'],
    })
    const { engine } = await bench([call('lookup', {}), { text: 'done' }], { tools: [lookup] })
    const session = engine.session({ ...owner, session: 's' })
    const { turnId, pending } = await session.run('go')
    const content = 'found'
    const stranger = admin('other', 'oxbow:admin')
    await expect(session.resolve(pending[0]!.callId, { content }, { principal: stranger })).rejects.toMatchObject({
      code: 'result_forbidden',
    })
    const principal = admin('other', 'oxbow:admin', 'oxbow:admin:tenants')
    await session.resolve(pending[0]!.callId, { content }, { principal })
    expect(await session.wait(turnId)).toMatchObject({ status: 'finished', text: 'done' })
  })
})
