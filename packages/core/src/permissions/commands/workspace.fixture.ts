// A workspace on a real disk, with what an attacker may have left in it.
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Workspace {
  /** The folder around the root; it holds things that must not be reached. */
  readonly outside: string
  readonly root: string
  readonly home: string
  readonly remove: () => void
}

export function makeWorkspace({ hostile = true }: { hostile?: boolean } = {}): Workspace {
  const outside = realpathSync(mkdtempSync(join(tmpdir(), 'oxbow-permissions-')))
  const root = join(outside, 'work')
  const home = join(outside, 'home')
  for (const folder of [
    'work',
    'home',
    'home/.ssh',
    'work-hack',
    'work/src/deep',
    'work/packages/one',
    'work/packages/two',
    'work/keys',
    'work/.git/refs',
    'work/.git/objects',
    'work/bare/objects',
    'work/bare/refs',
    'work/tools',
    'work/docs',
    'work/test',
    'work/scripts',
  ])
    mkdirSync(join(outside, folder), { recursive: true })
  const files: Record<string, string> = {
    secret: 'secret',
    'home/.ssh/id_rsa': 'key',
    'work-hack/file': 'x',
    'work/package.json': '{}',
    'work/README.md': '# x',
    'work/tsconfig.json': '{}',
    'work/Makefile': 'all:',
    'work/src/a.ts': 'a',
    'work/src/b.ts': 'b',
    'work/src/deep/c.ts': 'c',
    'work/packages/one/package.json': '{}',
    'work/packages/two/package.json': '{}',
    'work/docs/guide.md': 'g',
    'work/test/a.test.ts': 't',
    'work/scripts/run.sh': 'true',
    'work/.env': 'KEY=1',
    'work/.env.local': 'KEY=1',
    'work/.env.example': 'KEY=',
    'work/.npmrc': '//x',
    'work/id_rsa': 'k',
    'work/keys/server.pem': 'k',
    'work/.git/HEAD': 'ref: refs/heads/main',
    'work/.git/config': '',
    'work/bare/HEAD': 'ref: refs/heads/main',
    'work/bare/config': '[core]\n\tfsmonitor = touch x',
    'work/tools/shadowed': '#!/bin/sh',
    'work/error.log': 'e',
    'work/data.json': '[]',
    'work/data.csv': 'a,b',
  }
  for (const [name, text] of Object.entries(files)) writeFileSync(join(outside, name), text)
  chmodSync(join(root, 'tools/shadowed'), 0o755)
  const links: Record<string, string> = !hostile
    ? { 'link-in': 'src' }
    : {
        'link-out': '/etc',
        'link-file': '/etc/passwd',
        'src/link-up': '../..',
        'link-dangling': '../not-there',
        'link-loop': 'link-loop',
        'link-chain': 'link-chain-2',
        'link-chain-2': 'src/link-up/secret',
        'link-env': '.env',
        'link-in': 'src',
      }
  for (const [name, target] of Object.entries(links)) symlinkSync(target, join(root, name))
  return { outside, root, home, remove: () => rmSync(outside, { recursive: true }) }
}
