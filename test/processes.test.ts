import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { until } from '@oxbow/testing'
import { expect, onTestFinished, test } from 'vitest'

const stages = new URL('../scripts/stages.ts', import.meta.url).href
/** Starts a process in its own group, and prints the ids of both. */
const START = `
  const { spawn } = require('node:child_process')
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { detached: true, stdio: 'ignore' })
  console.log(JSON.stringify([process.pid, child.pid]))`
const STAYS = `${START}\nsetInterval(() => {}, 1000)`
const LEAVES = `${START}\nchild.unref()`

function runner(command: string, after = ''): ChildProcess {
  const script = `
    const { stageRunner } = await import(${JSON.stringify(stages)})
    const runner = stageRunner()
    await runner.run([process.execPath, '-e', ${JSON.stringify(command)}])
    ${after}`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  return child
}

/** Processes that a failing test would leave behind. */
function endFinally(pids: readonly number[]): void {
  onTestFinished(() => {
    for (const it of pids.filter(isRunning)) process.kill(it, 'SIGKILL')
  })
}

const isRunning = (pid: number): boolean => existsSync(`/proc/${pid}`)

test.runIf(process.platform === 'linux').each(['SIGTERM', 'SIGINT'] as const)(
  'a check that is stopped by %s ends everything that it has started',
  async (signal) => {
    const child = runner(STAYS)
    const [line] = (await once(child.stdout!, 'data')) as [Buffer]
    const pids = JSON.parse(line.toString()) as number[]
    endFinally(pids)
    expect(pids.map(isRunning)).toEqual([true, true])
    child.kill(signal)
    const [code] = (await once(child, 'exit')) as [number]
    expect(code).toBe(signal === 'SIGTERM' ? 143 : 130)
    await until(() => !pids.some(isRunning))
  },
)

test.runIf(process.platform === 'linux')('processes that a check leaves behind are reported and ended', async () => {
  const child = runner(LEAVES, 'console.log(JSON.stringify(runner.close()))')
  let printed = ''
  child.stdout!.on('data', (chunk: Buffer) => {
    printed += chunk
  })
  const [pids, left] = await until(() => printed.split('\n').length > 2 && printed.trim().split('\n'))
  endFinally(JSON.parse(pids!) as number[])
  expect(JSON.parse(left!)).toHaveLength(1)
  await until(() => !(JSON.parse(pids!) as number[]).some(isRunning))
})
