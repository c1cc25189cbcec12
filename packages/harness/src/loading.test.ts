import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const run = promisify(execFile)

/** Prints the third-party packages that a module loads. */
const program = `
  import { registerHooks } from 'node:module'
  const found = new Set()
  registerHooks({
    load(url, context, next) {
      const name = /node_modules\\/((?:@[^/]+\\/)?[^/]+)/.exec(url)?.[1]
      if (name !== undefined) found.add(name)
      return next(url, context)
    },
  })
  await import(process.argv[1])
  console.log(JSON.stringify([...found]))
`

test.each(['./index.ts', '../../knowledge/src/index.ts'])(
  'a program that imports %s does not load third-party packages before it needs them',
  async (path) => {
    const url = new URL(path, import.meta.url).href
    const node = ['-C', 'oxbow-source', '--input-type=module', '-e', program, url]
    const { stdout } = await run(process.execPath, node)
    expect(JSON.parse(stdout)).toEqual([])
  },
)
