import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { deadAnchors } from '../scripts/site/anchors.ts'
import { markdownOf } from '../scripts/site/api.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const site = join(root, 'docs/.vitepress/dist')

describe('the site of the documentation', () => {
  beforeAll(async () => {
    const env = { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '' }
    const args = ['--conditions=oxbow-source', join(root, 'scripts/site/main.ts')]
    await promisify(execFile)(process.execPath, args, { cwd: root, env, maxBuffer: 2 ** 26 }).catch((error) =>
      expect.fail(`${error.stdout}\n${error.stderr}`),
    )
  }, 300_000)

  test('X12: it is built without a dead link, with search, and with a page for every page of docs/', () => {
    const pages = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' }).filter((it) =>
      it.endsWith('.md'),
    )
    expect(pages.length).toBeGreaterThan(50)
    expect(pages.filter((it) => !existsSync(join(site, it.replace(/md$/, 'html'))))).toEqual([])
    expect(readdirSync(join(site, 'assets/chunks')).filter((it) => it.includes('localSearchIndex'))).toHaveLength(1)
  })

  test('X12: the API reference has what packages export, with comments, and links from one package to another', () => {
    const umbrella = readFileSync(join(root, 'docs/reference/api/oxbow.md'), 'utf8')
    const core = readFileSync(join(root, 'docs/reference/api/core.md'), 'utf8')
    expect(umbrella).toContain('[`createEngine`](./core.md#createEngine)')
    expect(core).toMatch(
      /### createEngine \{#createEngine\}\n\n[\s\S]*?function createEngine\(options: EngineOptions\): Engine/,
    )
  })

  test('X12: the HTTP reference has every operation of the OpenAPI document', () => {
    const page = readFileSync(join(root, 'docs/reference/http-api.md'), 'utf8')
    for (const title of ['POST /api/chat', 'GET /healthz', 'POST /tasks']) expect(page).toContain(`## ${title} `)
  })

  test('X12: every page of docs/ is in the sidebar, or linked from one that is', () => {
    const config = readFileSync(join(root, 'docs/.vitepress/config.ts'), 'utf8')
    const pages = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' }).filter(
      (it) => it.endsWith('.md') && !/^(decisions|reference\/api)\/|^index\.md$/.test(it),
    )
    expect(pages.filter((it) => !config.includes(`'/${it.slice(0, -3)}'`))).toEqual([])
  })
})

test('a doc comment becomes Markdown: tags are sentences, examples are code, and nothing is read as markup', () => {
  const comment = `/**
   * Makes a <thing>, as in \`a<b>\`.
   *
   * @param name what it is called
   * @returns the thing
   * @throws OxbowError \`invalid_id\`
   * @example
   * make('a')
   */`
  expect(markdownOf(comment)).toBe(
    'Makes a &lt;thing>, as in `a<b>`.\n\n- `name`: what it is called\n\n*Returns:* the thing\n\n' +
      "*Throws:* OxbowError `invalid_id`\n\n```js\nmake('a')\n```",
  )
})

test('X12: a link to a heading that its page does not have is found', () => {
  const folder = mkdtempSync(join(tmpdir(), 'oxbow-anchors-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  mkdirSync(join(folder, 'guides'))
  writeFileSync(join(folder, 'a.html'), '<h2 id="one"></h2> <a href="/guides/b#two"></a> <a href="#one"></a>')
  writeFileSync(join(folder, 'guides/b.html'), '<h2 id="two"></h2> <a href="/a#two"></a> <a href="/c#one"></a>')
  expect(deadAnchors(folder)).toEqual(['/guides/b: /a#two', '/guides/b: /c#one'])
})
