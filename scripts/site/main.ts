// `npm run docs` writes what is generated and builds the site into docs/.vitepress/dist; `npm run docs:dev` serves it.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build, createServer } from 'vitepress'
import { deadAnchors } from './anchors.ts'
import { apiPages } from './api.ts'
import { httpPage, openApiDocument } from './http.ts'

const root = join(import.meta.dirname, '../..')
const reference = join(root, 'docs/reference')

rmSync(join(reference, 'api'), { recursive: true, force: true })
mkdirSync(join(reference, 'api'), { recursive: true })
for (const [file, text] of apiPages(root)) writeFileSync(join(reference, 'api', file), text)
writeFileSync(join(reference, 'http-api.md'), httpPage(await openApiDocument()))

if (process.argv.includes('--dev')) {
  const server = await createServer(join(root, 'docs'))
  await server.listen()
  server.printUrls()
} else {
  await build(join(root, 'docs'))
  const dead = deadAnchors(join(root, 'docs/.vitepress/dist'))
  for (const link of dead) console.error(`Dead link: ${link}. The page has no such heading.`)
  if (dead.length > 0) process.exitCode = 1
}
