import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { record } from '../scripts/recording/record.ts'
import { svgOf } from '../scripts/recording/svg.ts'

test('X12: the recording of the README shows what the command line prints today', { timeout: 180_000 }, async () => {
  const lines = await record()
  const shown = lines.map((it) => it.text)
  // The turn was killed in the middle, was resumed, and ran each of its two calls once.
  expect(shown).toContain('Each of the eight pays 155. I have saved a note,')
  expect(shown.filter((it) => it === '(resumed after an interruption)')).toHaveLength(1)
  expect(shown.at(-1)).toBe('2')
  // If this fails, look at the new output and run `npm run recording`.
  expect(readFileSync(join(import.meta.dirname, '../docs/images/oxbow.svg'), 'utf8')).toBe(svgOf(lines))
})
