// An approval is for exact arguments, and for exactly one person's turn.

import { memory } from '@oxbow/backends'
import { eventsOf } from '@oxbow/testing'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { bench, call, ofType } from '../core.fixture.ts'
import { tool } from '../index.ts'

const paid: number[] = []
const pay = tool({
  name: 'pay',
  description: 'Pays.',
  effects: ['write'],
  input: z.object({ amount: z.number() }),
  run: ({ amount }) => {
    paid.push(amount)
    return 'paid'
  },
})

test('H2: an approval whose stored arguments are not those of its digest runs nothing', async () => {
  paid.length = 0
  const first = await bench([call('pay', { amount: 5 })], { tools: [pay] })
  await first.session.run('Pay.')
  const events = await eventsOf(first.session)
  const forged = events.map((it) => {
    if (it.type === 'approval.requested') return { ...it, arguments: { amount: 5_000 } }
    if (it.type !== 'model.finished') return it
    const blocks = it.message.blocks.map((block) =>
      block.type === 'call' ? { ...block, arguments: '{"amount":5000}' } : block,
    )
    return { ...it, message: { ...it.message, blocks } }
  })
  const backend = memory()
  const notes = { status: 'waiting' as const, agent: 'helper', title: '' }
  await backend.journal.append({ tenant: 'default', user: 'ann', session: 's1' }, 0, forged, notes)
  const second = await bench([{ text: 'Not paid.' }], { tools: [pay] }, { backend })
  const [asked] = ofType(forged, 'approval.requested')
  const { turnId } = await second.session.decide(asked!.approvalId, { verdict: 'approved' })
  expect(await second.session.wait(turnId)).toMatchObject({ text: 'Not paid.' })
  expect(paid).toEqual([])
  expect((await eventsOf(second.session, 'call.finished'))[0]?.status).toBe('denied')
})

test('B16: a user of the same name in another tenant decides nothing', async () => {
  paid.length = 0
  const { session } = await bench([call('pay', { amount: 5 })], { tools: [pay] })
  const { approvals } = await session.run('Pay.')
  const decided = session.decide(
    approvals[0]!.approvalId,
    { verdict: 'approved' },
    { principal: { tenant: 'other', user: 'ann' } },
  )
  await expect(decided).rejects.toMatchObject({ code: 'approval_forbidden' })
  expect(paid).toEqual([])
})
