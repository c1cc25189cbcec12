import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import { eventsOf, gate } from '@oxbow/testing'
import fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'
import { bench, call } from '../core.fixture.ts'
import { type DataScope, type Principal, type RowColumns, rowFilter, tool } from '../index.ts'

interface Order {
  readonly id: number
  readonly owner: string | null
  readonly dept: string | null
  readonly dept_no: number | null
  readonly tenant: string
  readonly amount: number | null
  readonly status: string | null
}

const database = new DatabaseSync(':memory:')
database.exec(`CREATE TABLE orders (id INTEGER PRIMARY KEY, owner TEXT, dept TEXT, dept_no INTEGER, tenant TEXT NOT NULL,
  amount INTEGER, status TEXT) STRICT`)
afterAll(() => database.close())
const insert = database.prepare('INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?, ?)')

function fill(rows: readonly Order[]): void {
  database.exec('DELETE FROM orders')
  for (const it of rows) insert.run(...(Object.values(it) as SQLInputValue[]))
}

function select({ sql, params }: { sql: string; params: (string | number)[] }): number[] {
  return database
    .prepare(`SELECT id FROM orders WHERE ${sql} ORDER BY id`)
    .all(...params)
    .map((it) => it.id as number)
}

const columns: RowColumns = { owner: 'owner', department: 'dept', tenant: 'tenant', others: ['amount', 'status'] }
const ann: Principal = { tenant: 'acme', user: 'ann', department: '2' }
const filterFor = (dataScope: readonly DataScope[] | undefined, more: Partial<Principal> = {}, its = columns) =>
  rowFilter({ principal: { ...ann, ...(dataScope && { dataScope: [...dataScope] }), ...more } }, its)

const rows: readonly Order[] = [
  { id: 1, owner: 'ann', dept: '1', dept_no: 1, tenant: 'acme', amount: 10, status: 'open' },
  { id: 2, owner: 'ben', dept: '2', dept_no: 2, tenant: 'acme', amount: 20, status: 'open' },
  { id: 3, owner: 'cem', dept: '3', dept_no: 3, tenant: 'acme', amount: null, status: null },
  { id: 4, owner: 'ann', dept: '2', dept_no: 2, tenant: 'other', amount: 5, status: 'closed' },
  { id: 5, owner: null, dept: null, dept_no: null, tenant: 'acme', amount: 7, status: 'open' },
]
const visible = async (...given: Parameters<typeof filterFor>): Promise<number[]> => {
  fill(rows)
  const filter = await filterFor(...given)
  const ids = select(filter.toSql())
  expect(rows.filter((it) => filter.ability.can('read', it)).map((it) => it.id)).toEqual(ids)
  return ids
}

describe('B3: the scope of rows', () => {
  test.each<[string, readonly DataScope[] | undefined, readonly number[]]>([
    ['all: of the tenant', [{ type: 'all' }], [1, 2, 3, 5]],
    ['own', [{ type: 'own' }], [1]],
    ['department', [{ type: 'department' }], [2]],
    ['department and below', [{ type: 'department_and_below', departments: ['3'] }], [2, 3]],
    ['custom', [{ type: 'custom', departments: ['1', '3'] }], [1, 3]],
    ['custom without departments', [{ type: 'custom', departments: [] }], []],
    ['conditions', [{ type: 'conditions', conditions: { amount: { $gte: 10 }, status: 'open' } }], [1, 2]],
    ['conditions for null', [{ type: 'conditions', conditions: { status: null } }], [3]],
    ['no conditions at all', [{ type: 'conditions', conditions: {} }], []],
    ['several, joined by OR', [{ type: 'own' }, { type: 'custom', departments: ['3'] }], [1, 3]],
    ['none in the list: no rows', [], []],
    ['none given: own rows', undefined, [1]],
  ])('%s', async (_, scope, expected) => {
    expect(await visible(scope)).toEqual(expected)
  })

  test('of a person without a department has no rows of departments, nor a row without one', async () => {
    const principal = { tenant: 'acme', user: 'ann' }
    for (const type of ['department', 'department_and_below'] as const) {
      const filter = await rowFilter({ principal: { ...principal, dataScope: [{ type }] } }, columns)
      expect(select(filter.toSql())).toEqual([])
    }
  })

  test('finds the same rows where the database holds ids as numbers', async () => {
    const numbers = { department: 'dept_no', tenant: 'tenant' }
    expect(await visible([{ type: 'department_and_below', departments: ['3'] }], {}, numbers)).toEqual([2, 3])
  })

  test('compares ids as texts where the database holds numbers, which would take other spellings for the same', async () => {
    const numbers = new DatabaseSync(':memory:')
    numbers.exec('CREATE TABLE cases (owner INTEGER, dept INTEGER, tenant INTEGER, PRIMARY KEY (owner, dept, tenant))')
    const cases = ['7', '16', '1000', '0'].flatMap((owner) =>
      ['103', '16'].flatMap((dept) => ['1', '7'].map((tenant) => ({ owner, dept, tenant }))),
    )
    for (const it of cases) numbers.prepare('INSERT INTO cases VALUES (?, ?, ?)').run(it.owner, it.dept, it.tenant)
    const id = fc.constantFrom(
      '7',
      '007',
      '7.0',
      '+7',
      '7e0',
      ' 7',
      '16',
      '0x10',
      '1000',
      '1e3',
      '103',
      '0103',
      '1',
      '01',
      'x',
      '',
    )
    const ids = fc.array(id, { maxLength: 2 })
    const scope: fc.Arbitrary<DataScope> = fc.oneof(
      fc.constantFrom<DataScope>({ type: 'all' }, { type: 'own' }, { type: 'department' }),
      ids.map((departments): DataScope => ({ type: 'custom', departments })),
      ids.map(($nin): DataScope => ({ type: 'conditions', conditions: { owner: { $nin } } })),
      id.map(($lt): DataScope => ({ type: 'conditions', conditions: { owner: { $lt } } })),
    )
    await fc.assert(
      fc.asyncProperty(id, id, id, fc.array(scope, { maxLength: 2 }), async (user, department, tenant, dataScope) => {
        const its = { owner: 'owner', department: 'dept', tenant: 'tenant' }
        const filter = await rowFilter({ principal: { user, department, tenant, dataScope } }, its)
        for (const quote of ['"', '`'] as const) {
          const { sql, params } = filter.toSql({ quote })
          const found = numbers.prepare(`SELECT * FROM cases WHERE ${sql}`).all(...params)
          const seen = found.map(({ owner, dept, tenant: of }) => `${owner} ${dept} ${of}`).sort()
          const expected = cases.filter((it) => filter.ability.can('read', it))
          expect(seen).toEqual(expected.map((it) => `${it.owner} ${it.dept} ${it.tenant}`).sort())
        }
      }),
      { numRuns: 500 },
    )
    // An index is still of use.
    const { sql, params } = (await filterFor([{ type: 'own' }], { user: '7' }, { owner: 'owner' })).toSql()
    const plan = numbers.prepare(`EXPLAIN QUERY PLAN SELECT * FROM cases WHERE ${sql}`).all(...params)
    expect(JSON.stringify(plan)).toContain('SEARCH cases USING')
    numbers.close()
  })

  test('that a table cannot express has no rows there', async () => {
    expect(await visible([{ type: 'department' }], {}, { owner: 'owner' })).toEqual([])
    expect(await visible([{ type: 'own' }], {}, { department: 'dept' })).toEqual([])
    expect(await visible([{ type: 'conditions', conditions: { region: 'north' } }])).toEqual([])
  })

  test('is looked up in the business system where identity does not name the departments', async () => {
    database.exec(`CREATE TABLE closure (ancestor TEXT, descendant TEXT); CREATE TABLE role_departments (role TEXT, dept TEXT);
      INSERT INTO closure VALUES ('2', '2'), ('2', '3'); INSERT INTO role_departments VALUES ('auditor', '1')`)
    const below = database.prepare('SELECT descendant AS id FROM closure WHERE ancestor = ?')
    const ofRole = database.prepare('SELECT dept AS id FROM role_departments WHERE role = ?')
    const departments: RowColumns['departments'] = (wanted) =>
      (wanted.type === 'below' ? below.all(wanted.department) : ofRole.all(wanted.role)).map((it) => String(it.id))
    const looked = { ...columns, departments }
    expect(await visible([{ type: 'department_and_below' }], {}, looked)).toEqual([2, 3])
    expect(await visible([{ type: 'custom', role: 'auditor' }], {}, looked)).toEqual([1])
    for (const scope of [{ type: 'department_and_below' }, { type: 'custom', role: 'auditor' }] as const)
      await expect(filterFor([scope])).rejects.toMatchObject({ code: 'row_scope_unresolved' })
  })

  test('holds only for tools whose permission it is meant for', async () => {
    fill(rows)
    const principal: Principal = {
      ...ann,
      dataScope: [{ type: 'own' }, { type: 'all', permissions: ['biz:news:*'] }],
    }
    const seen = async (permission?: string) =>
      select((await rowFilter({ principal, ...(permission && { permission }) }, columns)).toSql())
    expect(await seen('biz:order:query')).toEqual([1])
    expect(await seen('biz:news:query')).toEqual([1, 2, 3, 5])
    expect(await seen()).toEqual([1, 2, 3, 5])
  })
})

describe('B3: what a model brings', () => {
  const hostile = ["' OR 1=1 --", '" OR ""="', '1) OR (1=1', '$or', '%', '', '__proto__', 'ann\0']

  test('narrows and never widens: values are compared, never interpreted', async () => {
    fill(rows)
    const mine = await filterFor([{ type: 'own' }])
    expect(select(mine.and({ status: 'open', amount: undefined }).toSql())).toEqual([1])
    expect(select(mine.and({ owner: 'ben' }).toSql())).toEqual([])
    expect(select(mine.and({ owner: ['ann', 'ben', null], dept: [1, 2] }).toSql())).toEqual([1])
    for (const value of hostile) {
      const { sql, params } = mine.and({ status: value, owner: ['ann', value] }).toSql()
      expect(sql).not.toContain(value === '' ? "''" : value)
      expect(params).toContain(value)
      expect(select({ sql, params })).toEqual([])
    }
  })

  test.each([
    ['an operator', { status: { $ne: null } }],
    ['a nested operator', { status: [{ $or: [{}] }] }],
    ['a boolean', { status: true }],
    ['not a number', { amount: Number.NaN }],
    ['an unknown column', { '1=1) OR (1': 1 }],
    ['an operator for a column', { $or: 'x' }],
    ['a prototype', JSON.parse('{"__proto__": "x"}')],
  ])('is refused when it is %s', async (_, values) => {
    const mine = await filterFor([{ type: 'own' }])
    expect(() => mine.and(values as never)).toThrow(expect.objectContaining({ code: 'row_condition_invalid' }))
  })

  test('columns are names in the code: quoted, and refused where they could be anything else', async () => {
    const odd = await filterFor([{ type: 'own' }], {}, { owner: 'o"wner' })
    expect(odd.toSql({ table: 'o' }).sql).toContain('"o"."o""wner"')
    expect(odd.toSql({ quote: '`', placeholder: (n) => `$${n}` })).toEqual({
      sql: '((`o"wner` IN ($1) AND CAST(`o"wner` AS CHAR) IN ($2)))',
      params: ['ann', 'ann'],
    })
    for (const wrong of [{ owner: 'orders.owner' }, { owner: '$or' }, { owner: '' }, { tenant: 'tenant' }])
      await expect(filterFor([], {}, wrong)).rejects.toMatchObject({ code: 'row_columns_invalid' })
  })
})

test('B3: SQL, the ability in memory and a naive reading agree on every row', async () => {
  const text = fc.constantFrom('ann', 'ben', 'cem', "' OR 1=1 --")
  const department = fc.constantFrom('1', '2', '3', '10')
  const value = fc.oneof(fc.constantFrom('open', 'closed', "' OR 1=1 --"), fc.constant(null))
  const conditions = fc.oneof(
    fc.record({ status: value }),
    fc.record({ status: fc.record({ $nin: fc.array(value, { maxLength: 3 }) }) }),
    fc.record({ amount: fc.record({ $gte: fc.integer({ min: 0, max: 9 }), $ne: fc.integer({ min: 0, max: 9 }) }) }),
    fc.record({ amount: fc.record({ $lt: fc.integer({ min: 0, max: 9 }) }), status: fc.record({ $ne: value }) }),
  )
  const departments = fc.array(department, { maxLength: 3 })
  const scope: fc.Arbitrary<DataScope> = fc.oneof(
    fc.constantFrom<DataScope>({ type: 'all' }, { type: 'own' }, { type: 'department' }),
    departments.map((it): DataScope => ({ type: 'department_and_below', departments: it })),
    departments.map((it): DataScope => ({ type: 'custom', departments: it })),
    conditions.map((it): DataScope => ({ type: 'conditions', conditions: it })),
  )
  const row = fc.record({
    owner: fc.option(text),
    dept: fc.option(department),
    tenant: fc.constantFrom('acme', 'other'),
    amount: fc.option(fc.integer({ min: 0, max: 9 })),
    status: value,
  })
  const narrowed = fc.option(fc.record({ status: fc.array(value, { maxLength: 2 }), dept: fc.option(department) }))

  const naive = (it: Order, scopes: readonly DataScope[] | undefined, own: string | undefined): boolean =>
    it.tenant === 'acme' &&
    (scopes ?? [{ type: 'own' as const }]).some((one) => {
      switch (one.type) {
        case 'all':
          return true
        case 'own':
          return it.owner === 'ann'
        case 'department':
          return own !== undefined && it.dept === own
        case 'department_and_below':
          return own !== undefined && it.dept !== null && [own, ...one.departments!].includes(it.dept)
        case 'custom':
          return it.dept !== null && one.departments!.includes(it.dept)
        default:
          return Object.entries(one.conditions).every(([column, condition]) => {
            const actual = it[column as 'status' | 'amount']
            if (typeof condition !== 'object' || condition === null) return actual === condition
            const { $nin, $ne, $gte, $lt } = condition
            return (
              ($nin === undefined || !$nin.includes(actual)) &&
              ($ne === undefined || actual !== $ne) &&
              ($gte === undefined || (actual !== null && actual >= $gte)) &&
              ($lt === undefined || (actual !== null && actual < $lt))
            )
          })
      }
    })

  await fc.assert(
    fc.asyncProperty(
      fc.option(fc.array(scope, { maxLength: 3 }), { nil: undefined }),
      fc.option(department, { nil: undefined }),
      fc.array(row, { maxLength: 12 }),
      narrowed,
      async (scopes, own, given, and) => {
        const stored = given.map(
          ({ owner, dept, tenant, amount, status }, id): Order => ({
            id,
            owner,
            dept,
            dept_no: null,
            tenant,
            amount,
            status,
          }),
        )
        fill(stored)
        const principal = {
          tenant: 'acme',
          user: 'ann',
          ...(own && { department: own }),
          ...(scopes && { dataScope: scopes }),
        }
        let filter = await rowFilter({ principal }, columns)
        let expected = stored.filter((it) => naive(it, scopes, own))
        if (and !== null) {
          filter = filter.and(and)
          expected = expected.filter((it) => and.status.some((one) => one === it.status) && it.dept === and.dept)
        }
        const ids = expected.map((it) => it.id)
        expect(select(filter.toSql())).toEqual(ids)
        expect(stored.filter((it) => filter.ability.can('read', it)).map((it) => it.id)).toEqual(ids)
      },
    ),
    { numRuns: 300 },
  )
})

describe('B3: row scope at the moment of use', () => {
  const listing = (seen: number[][]) =>
    tool({
      name: 'list',
      description: 'Lists orders.',
      effects: ['read'],
      approval: 'always',
      input: {},
      run: async (_input, context) => {
        seen.push(select((await rowFilter(context, columns)).toSql()))
        return 'listed'
      },
    })

  test('a scope narrowed during an approval applies narrowed; a removed one matches no rows', async () => {
    fill(rows)
    const seen: number[][] = []
    let now: Principal | undefined = { ...ann, dataScope: [{ type: 'department' }] }
    const { session } = await bench(
      [call('list', {}), { text: 'Done.' }, call('list', {}), { text: 'Done.' }, call('list', {}), { text: 'Done.' }],
      { tools: [listing(seen)] },
      { currentPrincipal: async () => now },
    )
    const run = async (turnId: string): Promise<void> => {
      const principal: Principal = { ...ann, dataScope: [{ type: 'all' }] }
      const { approvals } = await session.run('Go.', { turnId, principal })
      await session.decide(approvals[0]!.approvalId, { verdict: 'approved' }, { principal: ann })
      await session.wait(turnId)
    }
    await run('t1')
    now = { ...ann, dataScope: [] }
    await run('t2')
    now = undefined
    await expect(run('t3')).rejects.toMatchObject({ code: 'principal_revoked' })
    expect(seen).toEqual([[2], []])
  })

  test.each([
    ['narrowed', { ...ann, dataScope: [{ type: 'department' }] }, [[2]], 'success'],
    ['taken away with everything else', undefined, [], 'unknown'],
  ] as const)('holds also when the process of the approved call dies: %s', async (_, then, expected, status) => {
    fill(rows)
    const seen: number[][] = []
    const begun = gate()
    const slow = tool({
      name: 'list',
      description: 'Lists orders.',
      effects: ['read'],
      approval: 'always',
      input: {},
      async run(_input, context) {
        if (context.attempt === 1) await begun.pass()
        seen.push(select((await rowFilter(context, columns)).toSql()))
        return 'listed'
      },
    })
    let now: Principal | undefined = { ...ann, dataScope: [{ type: 'all' }] }
    const { session, engine, another } = await bench(
      [call('list', {}), { text: 'Done.' }],
      { tools: [slow] },
      { currentPrincipal: async () => now },
    )
    const { approvals } = await session.run('Go.', { turnId: 't1', principal: now })
    await session.decide(approvals[0]!.approvalId, { verdict: 'approved' }, { principal: ann })
    await begun.reached
    await engine.stop(0)
    now = then && { ...then, dataScope: [...then.dataScope] }
    const other = another()
    await other.start()
    const there = other.session({ user: 'ann', session: 's1' })
    const end = await there.wait('t1').then(
      (it) => it.status,
      (error) => error.code,
    )
    expect(end).toBe(then === undefined ? 'principal_revoked' : 'finished')
    expect(seen).toEqual(expected)
    expect((await eventsOf(there, 'call.finished')).map((it) => it.status)).toEqual([status])
  })
})
