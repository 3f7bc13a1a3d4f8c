"""GridFS: files in chunks, on two ordinary collections with unique indexes."""

import os

import gridfs

from base import TestCase


class GridFs(TestCase):
    def test_a_file_of_several_chunks(self):
        files = gridfs.GridFSBucket(self.db, chunk_size_bytes=100_000)
        content = os.urandom(1_234_567)
        identity = files.upload_from_stream("photo.jpg", content, metadata={"kind": "photo"})
        self.assertEqual(files.open_download_stream(identity).read(), content)
        self.assertEqual(self.db.fs.chunks.count_documents({"files_id": identity}), 13)
        stream = files.open_download_stream_by_name("photo.jpg")
        stream.seek(999_999)
        self.assertEqual(stream.read(10), content[999_999:1_000_009])
        [entry] = files.find({"metadata.kind": "photo"})
        self.assertEqual(entry.length, len(content))

    def test_versions_rename_delete(self):
        files = gridfs.GridFSBucket(self.db)
        first, second = (files.upload_from_stream("a", content) for content in [b"one", b"two"])
        self.assertEqual(files.open_download_stream_by_name("a").read(), b"two")
        self.assertEqual(files.open_download_stream_by_name("a", revision=0).read(), b"one")
        files.rename(first, "b")
        self.assertEqual(files.open_download_stream_by_name("b").read(), b"one")
        files.delete(second)
        with self.assertRaises(gridfs.NoFile):
            files.open_download_stream(second)
        self.assertEqual(self.db.fs.chunks.count_documents({}), 1)
