import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { BIN, place, scripted } from '../cli.fixture.ts'

const STEERING = 'hi \u001b]0;title\u0007\u001b[2J\u009b31m \u202e end'
const SHOWN = 'hi \\u001b]0;title\\u0007\\u001b[2J\\u009b31m \\u202e end'

const replies = {
  'the answer of a model': { text: STEERING },
  'the message of a provider': { status: 400, body: { error: { message: STEERING } } },
}

/** The output on a terminal, provided by util-linux's `script`. */
async function onTerminal(args: string, env: Record<string, string>): Promise<string> {
  const { directory } = place()
  const child = spawn('/usr/bin/script', ['-qfc', `${process.execPath} ${BIN} ${args}`, '/dev/null'], {
    cwd: directory,
    env: { PATH: process.env.PATH ?? '', HOME: directory, TERM: 'dumb', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  return text(child.stdout)
}

describe.each(Object.entries(replies))('%s', (_, reply) => {
  test.skipIf(!existsSync('/usr/bin/script')).each(['', ' --json'])(
    'cannot steer a terminal: run%s',
    async (option) => {
      const { env } = await scripted({ scripts: { '*': { always: reply } } })
      const seen = await onTerminal(`run -p Go.${option}`, env)
      expect(seen).toContain(SHOWN.slice(0, 20))
      // biome-ignore lint/suspicious/noControlCharactersInRegex: the output must not contain them.
      expect(seen.replaceAll('\r\n', '')).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202e]/)
    },
  )

  test('is unchanged in a pipe', async () => {
    const { env } = await scripted({ scripts: { '*': { always: reply } } })
    const { stdout, stderr } = await place().run(['run', '-p', 'Go.'], { env })
    expect(stdout + stderr).toContain(STEERING)
  })
})
