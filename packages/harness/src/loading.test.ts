import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const run = promisify(execFile)

/** Prints the packages of others that are loaded with a module. */
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

test.each(['../src/index.ts', '../../knowledge/src/index.ts'])(
  'a program that imports %s loads no package of others before it needs one',
  async (path) => {
    const url = new URL(path, import.meta.url).href
    const node = ['-C', 'oxbow-source', '--input-type=module', '-e', program, url]
    const { stdout } = await run(process.execPath, node)
    expect(JSON.parse(stdout)).toEqual([])
  },
)
