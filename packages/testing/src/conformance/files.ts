import assert from 'node:assert/strict'
import { type ConformanceCheck, someKey } from './support.ts'

const bytes = (text: string) => new TextEncoder().encode(text)

export function fileConformance(check: ConformanceCheck): void {
  check('a file comes back byte for byte, with the version of its put', async ({ files }) => {
    assert.equal(await files.get(someKey, 'a'), undefined)
    const data = Uint8Array.from({ length: 256 }, (_, index) => index)
    const version = await files.put(someKey, 'a', data)
    assert.ok(version !== undefined && version > 0)
    const file = await files.get(someKey, 'a')
    assert.deepEqual(Buffer.from(file!.data), Buffer.from(data))
    assert.equal(file!.version, version)
  })

  check('a file of no bytes and one of five megabytes are files like others', async ({ files }) => {
    const large = new Uint8Array(5 * 1024 * 1024).fill(7)
    await files.put(someKey, 'empty', new Uint8Array())
    await files.put(someKey, 'large', large)
    assert.equal((await files.get(someKey, 'empty'))?.data.byteLength, 0)
    assert.equal(Buffer.compare((await files.get(someKey, 'large'))!.data, large), 0)
    const listed = (await files.list(someKey, '')).map((file) => [file.path, file.bytes])
    assert.deepEqual(listed, [
      ['empty', 0],
      ['large', large.byteLength],
    ])
  })

  check('bytes given in or out are not shared with the store', async ({ files }) => {
    const given = Buffer.from('before')
    const putting = files.put(someKey, 'a', given)
    given.fill(0)
    await putting
    const taken = await files.get(someKey, 'a')
    assert.equal(Buffer.from(taken!.data).toString(), 'before')
    taken!.data.fill(0)
    assert.equal(Buffer.from((await files.get(someKey, 'a'))!.data).toString(), 'before')
  })

  check('a put with a version succeeds only on that version', async ({ files }) => {
    const first = await files.put(someKey, 'a', bytes('1'), 0)
    assert.ok(first !== undefined)
    assert.equal(await files.put(someKey, 'a', bytes('x'), 0), undefined)
    const second = await files.put(someKey, 'a', bytes('2'), first)
    assert.ok(second !== undefined && second > first)
    assert.equal(await files.put(someKey, 'a', bytes('x'), first), undefined)
    const third = await files.put(someKey, 'a', bytes('3'))
    assert.ok(third !== undefined && third > second)
    assert.equal(await files.put(someKey, 'missing', bytes('x'), 3), undefined)
    assert.deepEqual(await files.get(someKey, 'a'), { data: (await files.get(someKey, 'a'))!.data, version: third })
    assert.equal(Buffer.from((await files.get(someKey, 'a'))!.data).toString(), '3')
  })

  check('of many concurrent puts on one version exactly one succeeds', async ({ files }) => {
    const version = (await files.put(someKey, 'a', bytes('0'), 0))!
    const puts = await Promise.all(
      Array.from({ length: 20 }, (_, writer) => files.put(someKey, 'a', bytes(`${writer}`), version)),
    )
    const winner = puts.findIndex((answer) => answer !== undefined)
    assert.equal(puts.filter((answer) => answer !== undefined).length, 1)
    assert.equal(Buffer.from((await files.get(someKey, 'a'))!.data).toString(), `${winner}`)
  })

  check('a deleted file is gone, and never repeats a version when created again', async ({ files }) => {
    const old = (await files.put(someKey, 'a', bytes('1'), 0))!
    await files.delete(someKey, 'a')
    await files.delete(someKey, 'a')
    await files.delete(someKey, 'never was')
    assert.equal(await files.get(someKey, 'a'), undefined)
    assert.deepEqual(await files.list(someKey, ''), [])
    assert.equal(await files.put(someKey, 'a', bytes('x'), old), undefined)
    const made = await files.put(someKey, 'a', bytes('2'), 0)
    assert.ok(made !== undefined && made !== old)
    assert.equal(await files.put(someKey, 'a', bytes('x'), old), undefined)
  })

  check('a list has the paths that begin with the prefix, in byte order, without wildcards', async ({ files }) => {
    const paths = [
      'a',
      'a/1',
      'a/2',
      'a%',
      'a%b',
      'a_',
      'a_b',
      'axb',
      'a*',
      'a*b',
      'a?',
      'A/1',
      'é',
      'e\u0301',
      '😀',
      '[a]',
    ]
    for (const path of paths) await files.put(someKey, path, bytes(path))
    const ordered = [...paths].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
    for (const prefix of ['', 'a', 'a/', 'a%', 'a_', 'a*', 'a?', 'A', 'é', 'e', '😀', '[', '%', '_', '*', 'zzz']) {
      const listed = await files.list(someKey, prefix)
      assert.deepEqual(
        listed.map((file) => file.path),
        ordered.filter((path) => path.startsWith(prefix)),
        prefix,
      )
    }
  })

  check('a path is an opaque name', async ({ files }) => {
    for (const path of ['../../etc/passwd', '/absolute', 'C:\\x', '.', '..', ' ', "'; DROP TABLE files; --"]) {
      const version = await files.put(someKey, path, bytes(path), 0)
      assert.ok(version !== undefined, path)
      assert.equal(Buffer.from((await files.get(someKey, path))!.data).toString(), path)
    }
  })
}
