import { type DataScope, rowFilter } from '@oxbow/core'
import { grants } from '@oxbow/core/internal'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { narrowed } from './narrowing.ts'

const scopes = (began: DataScope[] | undefined, now: DataScope[] | undefined) =>
  narrowed(
    { user: 'ann', department: '103', ...(began && { dataScope: began }) },
    { user: 'ann', department: '103', ...(now && { dataScope: now }) },
  ).dataScope

describe('rights from the start of a turn, narrowed by the current ones', () => {
  test('contain the permissions and roles that are in both, and the narrower of two wildcards', () => {
    const began = { user: 'ann', tenant: 'acme', permissions: ['a:*', 'b:one', 'c:*:*'], roles: ['x', 'y'] }
    const now = { user: 'ann', permissions: ['a:one', 'b:*', 'd:one', 'c:*:*'], roles: ['y', 'z'] }
    expect(narrowed(began, now)).toEqual({
      user: 'ann',
      tenant: 'acme',
      permissions: ['b:one', 'c:*:*', 'a:one'],
      roles: ['y'],
      dataScope: [{ type: 'own' }],
    })
    expect(narrowed({ user: 'ann' }, { user: 'ann', permissions: ['*'], roles: ['x'] })).toMatchObject({
      permissions: [],
      roles: [],
    })
  })

  test('keep the department only if it is unchanged', () => {
    expect(narrowed({ user: 'ann', department: '1' }, { user: 'ann', department: '1' }).department).toBe('1')
    expect(narrowed({ user: 'ann', department: '1' }, { user: 'ann', department: '2' })).not.toHaveProperty(
      'department',
    )
    expect(narrowed({ user: 'ann' }, { user: 'ann', department: '2' })).not.toHaveProperty('department')
  })

  test.each<[DataScope[] | undefined, DataScope[] | undefined, DataScope[]]>([
    [[{ type: 'own' }], [{ type: 'all' }], [{ type: 'own' }]],
    [undefined, [{ type: 'all' }], [{ type: 'own' }]],
    [[{ type: 'all' }], [{ type: 'department' }], [{ type: 'department' }]],
    [[{ type: 'department_and_below' }], [{ type: 'department' }], [{ type: 'department' }]],
    [[{ type: 'own' }], [{ type: 'department' }], []],
    [
      [{ type: 'custom', departments: ['1', '2'] }],
      [{ type: 'custom', departments: ['2'] }],
      [{ type: 'custom', departments: ['2'] }],
    ],
    [[{ type: 'custom', role: '2' }], [{ type: 'custom', role: '1' }], []],
    [
      [{ type: 'all', permissions: ['a:*'] }],
      [{ type: 'department', permissions: ['a:b', 'c:d'] }],
      [{ type: 'department', permissions: ['a:b'] }],
    ],
    [[{ type: 'all', permissions: ['a:b'] }], [{ type: 'all', permissions: ['c:d'] }], []],
    [[], [{ type: 'all' }], []],
  ])('rows of %j and %j become %j', (began, now, both) => {
    expect(scopes(began, now)).toEqual(both)
  })

  test('never exceed either of the two', async () => {
    const permission = fc.constantFrom('*', 'a:*', 'a:b', 'a:b:c', 'c:d', '*:*:*')
    const departments = fc.subarray(['103', '104', '105'])
    const only = { permissions: fc.option(fc.array(permission, { maxLength: 2 }), { nil: undefined }) }
    const scope: fc.Arbitrary<DataScope> = fc.oneof(
      fc.record({ type: fc.constantFrom('all', 'own', 'department'), ...only }),
      fc.record({ type: fc.constantFrom('custom', 'department_and_below'), departments, ...only }),
    )
    const person = fc.record({
      user: fc.constant('ann'),
      department: fc.constantFrom('103', '104', undefined),
      permissions: fc.array(permission),
      dataScope: fc.array(scope, { maxLength: 3 }),
    })
    const rows = ['ann', 'bob'].flatMap((owner) => ['103', '104', '105'].map((department) => ({ owner, department })))
    await fc.assert(
      fc.asyncProperty(person, person, async (began, now) => {
        const both = narrowed(began as never, now as never)
        for (const needed of ['a:b', 'a:b:c', 'c:d', 'x'])
          if (grants(both.permissions!, needed))
            expect(grants(began.permissions, needed) && grants(now.permissions, needed)).toBe(true)
        for (const tool of ['a:b', 'c:d', undefined]) {
          const seen = async (principal: unknown): Promise<string[]> => {
            const given = { principal, ...(tool && { permission: tool }) } as Parameters<typeof rowFilter>[0]
            const { ability } = await rowFilter(given, { owner: 'owner', department: 'department' })
            return rows.filter((it) => ability.can('read', it as never)).map((it) => JSON.stringify(it))
          }
          const [of, then, today] = await Promise.all([seen(both), seen(began), seen(now)])
          for (const it of of) expect(then.includes(it) && today.includes(it)).toBe(true)
        }
      }),
      { numRuns: 300 },
    )
  })
})
