// How long a cold `oxbow serve` takes to answer /readyz, and an import of core. Of the built packages, as users have
// them.
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { percentile } from './statistics.ts'

const RUNS = 9
const path = (name: string): string => fileURLToPath(new URL(name, import.meta.url))

/** Milliseconds from spawn to the first 200 of /readyz. */
async function serveOnce(): Promise<number> {
  const directory = mkdtempSync(join(tmpdir(), 'oxbow-start-'))
  const port = 20_000 + Math.floor(Math.random() * 20_000)
  const startedAt = performance.now()
  const child = spawn(process.execPath, [path('../packages/oxbow/dist/main.js'), 'serve', '--port', String(port)], {
    cwd: directory,
    stdio: 'ignore',
  })
  try {
    for (;;) {
      const ready = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined)
      if (ready?.status === 200) return performance.now() - startedAt
      if (performance.now() - startedAt > 10_000) throw new Error('not ready within 10 s')
      await new Promise((resolve) => setTimeout(resolve, 3))
    }
  } finally {
    child.kill('SIGTERM')
    await new Promise((resolve) => child.once('exit', resolve))
    rmSync(directory, { recursive: true })
  }
}

function importOnce(): number {
  const script = `const t = performance.now(); await import(${JSON.stringify(path('../packages/core/dist/index.js'))}); console.log(performance.now() - t)`
  return Number(spawnSync(process.execPath, ['--input-type=module', '-e', script]).stdout)
}

export async function startup(): Promise<{ serveMs: number; importCoreMs: number }> {
  const serve: number[] = []
  for (let n = 0; n < RUNS; n++) serve.push(await serveOnce())
  return {
    serveMs: percentile(serve, 50),
    importCoreMs: percentile(Array.from({ length: RUNS }, importOnce), 50),
  }
}
