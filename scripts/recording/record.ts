// Records the terminal while a turn is killed in the middle and the next start finishes it. Every command runs as it
// is shown, with the real command line and a store on disk; only the model is scripted.
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { scriptedModel } from '@oxbow/testing'

export interface Line {
  readonly kind: 'command' | 'output' | 'comment'
  readonly text: string
}

const MAIN = join(import.meta.dirname, '../../packages/oxbow/src/main.ts')
const CHAT = "oxbow chat --session offsite <<< 'We are 8 and the hotel is 1240. What does each pay? Note it.'"
const RESUME = 'oxbow chat --session offsite < /dev/null'
const COUNT = 'oxbow sessions export offsite | grep -c call.started'

const BEFORE_THE_KILL = 'Each of the eight pays 155. I have saved a note, '
const AFTER_IT = 'so you find it in any later conversation.'

/** Takes a few seconds. The lines are the same in every run. */
export async function record(): Promise<readonly Line[]> {
  const model = await scriptedModel({
    scripts: {
      demo: [
        { calls: [{ name: 'calculate', arguments: { expression: '1240 / 8' } }] },
        { calls: [{ name: 'save_note', arguments: { text: 'Offsite: 155 per person' } }] },
        { text: BEFORE_THE_KILL, chunks: 8, silentAfterChunks: 8 },
        { text: BEFORE_THE_KILL + AFTER_IT, chunks: 16 },
      ],
    },
  })
  const directory = mkdtempSync(join(tmpdir(), 'oxbow-recording-'))
  const program = `#!/bin/sh\nexec '${process.execPath}' --conditions=oxbow-source '${MAIN}' "$@"\n`
  writeFileSync(join(directory, 'oxbow'), program, { mode: 0o755 })
  const env = {
    PATH: `${directory}:${process.env.PATH}`,
    HOME: directory,
    OXBOW_MODEL: 'vllm:demo',
    VLLM_BASE_URL: model.url,
    OXBOW_AGENT_ALLOW: 'save_note',
  }
  const run = async (command: string, killWhenItShows?: string): Promise<Line[]> => {
    const child = spawn('bash', ['-c', command], {
      cwd: directory,
      env,
      detached: true,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let seen = ''
    child.stdout.on('data', (it: Buffer) => {
      seen += it.toString()
      if (killWhenItShows !== undefined && seen.includes(killWhenItShows)) process.kill(-child.pid!, 'SIGKILL')
    })
    const output = (await text(child.stdout)).trimEnd().split('\n')
    return [{ kind: 'command', text: command }, ...output.map((it): Line => ({ kind: 'output', text: it }))]
  }
  try {
    return [
      ...(await run(CHAT, BEFORE_THE_KILL)),
      { kind: 'comment', text: '# kill -9 in the middle of the answer. Start again:' },
      ...(await run(RESUME)),
      { kind: 'comment', text: '# How many tool calls have run?' },
      ...(await run(COUNT)),
    ]
  } finally {
    await model.close()
    rmSync(directory, { recursive: true })
  }
}
