/* Files and directories for C++17 and later, on top of <aco/file.h>, which says what these calls do. Header only; link
 * acorn_io. Failures, cancelling and owning are as in <aco/io.hpp>.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   for (const aco_dir_entry_t &entry : aco::directory("logs")) {
 *       aco::file log((std::string("logs/") + entry.name).c_str(), O_RDONLY);
 *       total += log.stat().size;
 *   } */
#ifndef ACO_FILE_HPP
#define ACO_FILE_HPP

#include "file.h"
#include "io.hpp"

#include <cstddef>
#include <iterator>

namespace aco {
inline namespace ACO__CPP_KIND {

/* Owns the descriptor of a file, from aco_file_open() or elsewhere. */
class file : descriptor {
public:
    file() noexcept = default;
    explicit file(int fd) noexcept : descriptor(fd) {}
    file(const char *path, int flags, unsigned mode = 0666, const char *location = ACO__CALLER)
        : descriptor(aco_file_open_at(path, flags, mode, location))
    {
        detail::io_check(get(), "aco::file");
    }
    /* The file `path` below a folder, and never another one: aco_file_open_beneath(). */
    static file beneath(const char *folder, const char *path, int flags, unsigned mode = 0666,
                        int links = ACO_FILE_LINKS_INSIDE, const char *location = ACO__CALLER)
    {
        file opened(aco_file_open_beneath_at(folder, path, flags, mode, links, location));
        detail::io_check(opened.get(), "aco::file::beneath");
        return opened;
    }
    using descriptor::get;
    using descriptor::operator bool;
    using descriptor::release;
    using descriptor::close;

    /* Returns 0 at the end of the file. */
    std::size_t read(void *p, std::size_t n, const char *location = ACO__CALLER)
    {
        return detail::io_done(aco_file_read_at(get(), p, n, location), "aco::file::read");
    }
    std::size_t pread(void *p, std::size_t n, std::int64_t offset, const char *location = ACO__CALLER) const
    {
        return detail::io_done(aco_file_pread_at(get(), p, n, offset, location), "aco::file::pread");
    }
    std::size_t write(const void *p, std::size_t n, const char *location = ACO__CALLER)
    {
        return detail::io_done(aco_file_write_at(get(), p, n, location), "aco::file::write");
    }
    std::size_t write(std::string_view text, const char *location = ACO__CALLER)
    {
        return write(text.data(), text.size(), location);
    }
    std::size_t pwrite(const void *p, std::size_t n, std::int64_t offset, const char *location = ACO__CALLER)
    {
        return detail::io_done(aco_file_pwrite_at(get(), p, n, offset, location), "aco::file::pwrite");
    }
    void sync(const char *location = ACO__CALLER)
    {
        detail::io_check(aco_file_sync_at(get(), location), "aco::file::sync");
    }
    aco_file_status_t stat(const char *location = ACO__CALLER) const
    {
        aco_file_status_t status;
        detail::io_check(aco_file_fstat_at(get(), &status, location), "aco::file::stat");
        return status;
    }
    static aco_file_status_t stat_path(const char *path, const char *location = ACO__CALLER)
    {
        aco_file_status_t status;
        detail::io_check(aco_file_stat_at(path, &status, location), "aco::file::stat_path");
        return status;
    }
    static void rename(const char *from, const char *to, const char *location = ACO__CALLER)
    {
        detail::io_check(aco_file_rename_at(from, to, location), "aco::file::rename");
    }
    static void link(const char *from, const char *to, const char *location = ACO__CALLER)
    {
        detail::io_check(aco_file_link_at(from, to, location), "aco::file::link");
    }
    static void unlink(const char *path, const char *location = ACO__CALLER)
    {
        detail::io_check(aco_file_unlink_at(path, location), "aco::file::unlink");
    }
    void truncate(std::int64_t size, const char *location = ACO__CALLER)
    {
        detail::io_check(aco_file_truncate_at(get(), size, location), "aco::file::truncate");
    }
};

/* A directory. Its entries can be read once: by a range-for, or by next(). */
class directory {
public:
    explicit directory(const char *path, const char *location = ACO__CALLER)
        : dir_(aco_dir_open_at(path, location)), location_(location)
    {
        if (!dir_)
            detail::io_failed("aco::directory");
    }
    directory(directory &&from) noexcept : dir_(std::exchange(from.dir_, nullptr)), location_(from.location_) {}
    directory &operator=(directory &&from) noexcept
    {
        std::swap(dir_, from.dir_);
        std::swap(location_, from.location_);
        return *this;
    }
    ~directory()
    {
        if (dir_)
            (void)aco_dir_close(dir_);
    }

    static void make(const char *path, unsigned mode = 0777, const char *location = ACO__CALLER)
    {
        detail::io_check(aco_dir_make_at(path, mode, location), "aco::directory::make");
    }
    static void remove(const char *path, const char *location = ACO__CALLER)
    {
        detail::io_check(aco_dir_remove_at(path, location), "aco::directory::remove");
    }

    /* Returns the next entry, valid until the next call, or NULL if there is none. */
    const aco_dir_entry_t *next(const char *location = ACO__CALLER)
    {
        const int result = aco_dir_read_at(dir_, &entry_, location);
        detail::io_check(result, "aco::directory::next");
        return result ? &entry_ : nullptr;
    }

    class iterator {
    public:
        using iterator_category = std::input_iterator_tag;
        using value_type = aco_dir_entry_t;
        using difference_type = std::ptrdiff_t;
        using pointer = const aco_dir_entry_t *;
        using reference = const aco_dir_entry_t &;

        reference operator*() const noexcept { return *entry_; }
        pointer operator->() const noexcept { return entry_; }
        iterator &operator++()
        {
            entry_ = of_->next(of_->location_);
            return *this;
        }
        void operator++(int) { ++*this; }
        bool operator==(const iterator &other) const noexcept { return entry_ == other.entry_; }
        bool operator!=(const iterator &other) const noexcept { return entry_ != other.entry_; }

    private:
        friend class directory;
        explicit iterator(directory *of) : of_(of), entry_(of ? of->next(of->location_) : nullptr) {}
        directory *of_;
        const aco_dir_entry_t *entry_; /* NULL: the end */
    };
    iterator begin() { return iterator(this); }
    iterator end() { return iterator(nullptr); }

private:
    aco_dir_t *dir_;
    const char *location_;
    aco_dir_entry_t entry_{};
};

} // namespace ACO__CPP_KIND
} // namespace aco

#endif
