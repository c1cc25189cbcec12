import { expect, test } from 'vitest'
import { unexpectedSkips } from '../scripts/skips.ts'

test('Y17: a test that is skipped without a reason in the list is named, whatever its status is called', () => {
  const of = (title: string, status: string) => ({ title, fullName: `a group ${title}`, status })
  const assertionResults = [
    of('passes', 'passed'),
    of('fails', 'failed'),
    of('needs a database', 'skipped'),
    of('comes later', 'todo'),
    of('a folder that may not be read is reported, and its documents stay', 'skipped'),
  ]
  expect(unexpectedSkips({ testResults: [{ name: 'a.test.ts', assertionResults }] })).toEqual([
    'a.test.ts: a group needs a database',
    'a.test.ts: a group comes later',
  ])
})
