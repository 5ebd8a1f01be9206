#pragma once

#include <cstddef>
#include <deque>
#include <exception>
#include <optional>
#include <utility>

namespace precast::data {

/// Prepares items before they are needed. If making an item throws an exception, next() rethrows it
/// only after it has returned all earlier items. Not thread-safe.
template <typename Item>
class LookAhead {
 public:
  /// @param depth number of items that are prepared in addition to the one that next() returns.
  explicit LookAhead(std::size_t depth) : depth_(depth) {}

  /// @param make returns the next item, or nothing at the end; not called again after the end or a
  /// failure.
  /// @param ready returns whether make() would return immediately. If not, next() returns an
  /// available item without waiting for a later one.
  template <typename Make, typename Ready>
  std::optional<Item> next(const Make& make, const Ready& ready) {
    while (!ended_ && items_.size() <= depth_ && (items_.empty() || ready())) add(make);
    if (!items_.empty()) {
      std::optional<Item> item(std::move(items_.front()));
      items_.pop_front();
      return item;
    }
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    return std::nullopt;
  }
  /// Discards all items and forgets the end or a failure, so next() calls make() again.
  void restart() {
    items_.clear();
    failure_ = nullptr;
    ended_ = false;
  }

 private:
  template <typename Make>
  void add(const Make& make) {
    try {
      if (std::optional<Item> item = make()) {
        items_.push_back(std::move(*item));
      } else {
        ended_ = true;
      }
    } catch (...) {
      failure_ = std::current_exception();
      ended_ = true;
    }
  }

  std::size_t depth_;
  std::deque<Item> items_;
  std::exception_ptr failure_;
  bool ended_ = false;
};

}  // namespace precast::data
