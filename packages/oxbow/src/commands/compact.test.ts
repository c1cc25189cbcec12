import { expect, test } from 'vitest'
import { place, scripted } from '../cli.fixture.ts'

test('H7: oxbow sessions compact previews the removal and performs it', { timeout: 60_000 }, async () => {
  const { env, server } = await scripted({
    scripts: {
      '*': (request) =>
        String(request.messages[0]?.content).startsWith('You keep the notes')
          ? { text: '{"add":[{"kind":"fact","text":"All is well."}]}' }
          : { text: 'Yes.' },
    },
  })
  const here = place()
  for (let n = 0; n < 7; n++)
    expect((await here.run(['run', '-p', `Request ${n}`, '--session', 's'], { env })).code).toBe(0)
  const asked = server.requests.length
  const plan = await here.run(['sessions', 'compact', 's', '--dry-run'], { env })
  expect(plan.stdout).toMatch(
    /^Would be compacted: a summary .*\nmessages {2}14 → 11\ntokens {4}\d+ → \d+ .*\nof them {3}instructions/,
  )
  expect(server.requests).toHaveLength(asked)
  const done = await here.run(['sessions', 'compact', 's'], { env })
  expect(done).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Compacted: a summary/) })
  const journal = await here.run(['sessions', 'export', 's'], { env })
  expect(journal.stdout.trim().split('\n').at(-1)).toContain('"type":"context.compacted"')
  expect((await here.run(['sessions', 'compact', 'none'], { env })).stderr).toContain(
    'No session "none" for user "default"',
  )
  const bad = await here.run(['run', '-p', 'Hi'], { env: { ...env, OXBOW_AGENT_COMPACTION_KEEP: '29' } })
  expect(bad).toMatchObject({ code: 2, stderr: expect.stringContaining('keep 29 + 1 summary = 30 messages') })
})
