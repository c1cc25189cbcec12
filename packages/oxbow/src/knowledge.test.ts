import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '@oxbow/testing'
import { describe, expect, test } from 'vitest'
import { type Place, place } from './cli.fixture.ts'

function withDocuments(): Place {
  const there = place()
  mkdirSync(join(there.directory, 'docs/sub'), { recursive: true })
  writeFileSync(join(there.directory, 'docs/keys.md'), '# Keys\n\nRotate a key every ninety days.')
  writeFileSync(join(there.directory, 'docs/sub/orders.md'), '# Orders\n\nOrder ORD-2024-00183 was delivered.')
  return there
}

// Each command is a process that starts a thread.
describe('Y11: oxbow knowledge', { timeout: 60_000 }, () => {
  test('adds, lists, searches and measures a folder', async () => {
    const there = withDocuments()
    const added = await there.run(['knowledge', 'add', 'docs'])
    expect(added).toMatchObject({ code: 0, stderr: '' })
    expect(added.stdout).toBe(
      '2 added, 0 changed, 0 renamed, 0 removed, 0 unchanged (2 documents in .oxbow/knowledge.db)\n',
    )
    expect((await there.run(['knowledge', 'add', 'docs', '--json'])).stdout).toContain('"unchanged":2')

    const listed = await there.run(['knowledge', 'list', '--json'])
    expect(
      listed.stdout
        .trim()
        .split('\n')
        .map((it) => JSON.parse(it).name),
    ).toEqual(['keys.md', 'sub/orders.md'])

    const found = await there.run(['knowledge', 'search', 'rotating keys'])
    expect(found.stdout).toMatch(/^\[keys\.md#[0-9a-f]{12}\] Keys\n {4}# Keys\n/)
    const exact = JSON.parse((await there.run(['knowledge', 'search', 'ORD-2024-00183', '--json', '-k', '1'])).stdout)
    expect(exact.hits).toMatchObject([{ document: 'sub/orders.md', exact: true }])

    writeFileSync(
      join(there.directory, 'labels.jsonl'),
      '{"query":"rotate","relevant":["keys.md"],"set":"words"}\n{"query":"rotate","relevant":["sub/orders.md"],"set":"wrong"}\n',
    )
    const measured = await there.run(['knowledge', 'eval', 'labels.jsonl', '--json'])
    expect(
      measured.stdout
        .trim()
        .split('\n')
        .map((it) => JSON.parse(it)),
    ).toEqual([
      { set: 'words', queries: 1, recall: 1, mrr: 1, ndcg: 1, k: 5 },
      { set: 'wrong', queries: 1, recall: 0, mrr: 0, ndcg: 0, k: 5 },
    ])
    expect((await there.run(['knowledge', 'eval', 'labels.jsonl'])).stdout).toMatch(/recall@5.*\nwords +1 +1\.000/)
  })

  test('reports skipped files, a wrong path, a missing index and invalid labels with an exit code', async () => {
    const there = withDocuments()
    const early = await there.run(['knowledge', 'search', 'keys'])
    expect(early).toMatchObject({ code: 2, stderr: expect.stringContaining('oxbow knowledge add PATH') })
    writeFileSync(join(there.directory, 'docs/broken.pdf'), 'no pdf')
    const partly = await there.run(['knowledge', 'add', 'docs'])
    expect(partly).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^skipped: .*broken\.pdf: It cannot be read as PDF/),
    })
    expect(partly.stdout).toContain('2 added')
    expect(await there.run(['knowledge', 'add', 'nothing'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('No such file or folder'),
    })
    expect(await there.run(['knowledge', 'search', 'keys', '-k', 'many'])).toMatchObject({ code: 2 })
    writeFileSync(join(there.directory, 'labels.jsonl'), '{"query":"rotate"}\n')
    expect(await there.run(['knowledge', 'eval', 'labels.jsonl'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('Line 1 of the labels'),
    })
  })

  test('added paths are removed; a part of one, or another path, is refused', async () => {
    const there = withDocuments()
    await there.run(['knowledge', 'add', 'docs'])
    expect(await there.run(['knowledge', 'remove', 'docs/keys.md'])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/docs\/keys\.md was not added\. Only added paths can be removed: .*\/docs\.$/m),
    })
    expect(await there.run(['knowledge', 'remove', 'docs'])).toMatchObject({ code: 0, stdout: '2 removed\n' })
    expect(await there.run(['knowledge', 'list'])).toMatchObject({ code: 0, stdout: '' })
  })

  test('a file name cannot imitate a line of the output', async () => {
    const there = withDocuments()
    writeFileSync(join(there.directory, 'docs/bad\n900 added.pdf'), 'no pdf')
    const { stderr } = await there.run(['knowledge', 'add', 'docs'])
    expect(stderr).toMatch(/^skipped: .*bad\\n900 added\.pdf: It cannot be read as PDF.*\n$/)
    expect((await there.run(['knowledge', 'list'])).stderr).toBe(stderr)
  })

  test('Ctrl-C ends it in the middle of a document', async () => {
    const there = withDocuments()
    writeFileSync(join(there.directory, 'docs/slow.md'), '# a\nb\n'.repeat(1_700_000))
    const command = there.start(['knowledge', 'add', 'docs', '--json'])
    await until(() => existsSync(join(there.directory, '.oxbow/knowledge.db')), { deadlineMs: 15_000 })
    const began = performance.now()
    command.inner('SIGINT')
    expect(await command.ended).toMatchObject({ code: 130, stderr: expect.stringContaining('interrupted') })
    expect(performance.now() - began).toBeLessThan(6_000)
  })

  test('Ctrl-C ends it with 130 and keeps the index so far', async () => {
    const there = withDocuments()
    for (let n = 0; n < 1_500; n++)
      writeFileSync(join(there.directory, `docs/${n}.md`), `# ${n}\n\n${'words '.repeat(200)}`)
    const command = there.start(['knowledge', 'add', 'docs', '--json'])
    await until(() => existsSync(join(there.directory, '.oxbow/knowledge.db')), { deadlineMs: 15_000 })
    command.inner('SIGINT')
    const { code, stderr } = await command.ended
    expect({ code, stderr }).toEqual({ code: 130, stderr: expect.stringContaining('interrupted') })
    const rest = JSON.parse((await there.run(['knowledge', 'add', 'docs', '--json'])).stdout)
    expect(rest.added + rest.unchanged).toBe(1_502)
    expect(rest.added).toBeGreaterThan(0)
  })
})
