import { expect, test } from 'vitest'
import { until } from './until.ts'

test('it returns the first truthy value of the condition', async () => {
  const values = [undefined, 0, '', 'found', 'later']
  expect(await until(() => values.shift())).toBe('found')
})

test('a condition that throws or rejects counts as not yet', async () => {
  let asked = 0
  const value = await until(async () => {
    if (++asked < 3) throw new Error('not yet')
    return asked
  })
  expect(value).toBe(3)
})

test('after the deadline it reports the condition and its last error', async () => {
  const cause = new Error('still closed')
  const waiting = until(
    () => {
      throw cause
    },
    { deadlineMs: 20 },
  )
  await expect(waiting).rejects.toMatchObject({ message: expect.stringContaining('throw cause'), cause })
})
